package designlock;

/** Logs to stderr: stdout belongs to the line protocol. */
final class Log {
    static void warn(String what, Throwable why) {
        System.err.println(System.currentTimeMillis() + " " + what + (why == null ? "" : ": " + why));
    }

    private Log() {}
}
