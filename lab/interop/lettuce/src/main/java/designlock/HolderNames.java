package designlock;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.UUID;

/**
 * Names of holders like server1-thread-123 (section 10.5.2), with a part of this program between the
 * host and the thread: two programs of one host both have a thread 1.
 */
final class HolderNames {
    private final String program = host() + "-" + UUID.randomUUID();

    String of(Thread thread) {
        return program + "-thread-" + thread.getId();
    }

    private static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "unknown";
        }
    }
}
