package designlock;

import io.lettuce.core.api.sync.RedisCommands;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** The commands of the line protocol: words are thread, command, arguments. */
final class Commands {
    private final LettuceClient client;
    private final LockManager locks;
    private final HolderNames names = new HolderNames();
    private final MetricsCollector metrics = new MetricsCollector();
    /** A connection of its own for the counter. */
    private final RedisCommands<String, String> plain;

    Commands(Options options) {
        client = new LettuceClient(options.url);
        plain = client.connectPlain().sync();
        ScheduledExecutorService scheduler = Executors.newScheduledThreadPool(2, task -> {
            Thread thread = new Thread(task, "lock-scheduler");
            thread.setDaemon(true);
            return thread;
        });
        ReleaseNotices notices = new ReleaseNotices(
                client, options.listening, scheduler, options.wakeDelayMicros);
        RenewalManager renewals = new RenewalManager(scheduler);
        LockServices services = new LockServices(client, notices, renewals, scheduler, metrics, names);
        locks = new LockManager(services, options::apply);
    }

    Object run(String[] w) throws Exception {
        switch (w[1]) {
            case "threadid":
                return names.of(Thread.currentThread());
            case "metrics":
                return metrics;
            case "force", "token":
                throw new UnsupportedOperationException("the design document has no " + w[1]);
            default:
                return run(w, locks.getLock(w[2]));
        }
    }

    private Object run(String[] w, RedisDistributedLock lock) throws Exception {
        switch (w[1]) {
            case "lock" -> lock.lock();
            case "lockfor" -> lock.lockFor(number(w, 3));
            case "unlock" -> lock.unlock();
            case "destroy" -> locks.destroyLock(w[2]);
            case "trylock" -> {
                return lock.tryLock(number(w, 3), TimeUnit.MILLISECONDS);
            }
            case "tryfor" -> {
                return lock.tryLockFor(number(w, 3), number(w, 4), TimeUnit.MILLISECONDS);
            }
            case "held" -> {
                return lock.isHeldByCurrentThread();
            }
            case "holds" -> {
                return lock.holds();
            }
            case "locked" -> {
                return client.exists(w[2]);
            }
            case "ttl" -> {
                return client.ttl(w[2]);
            }
            case "contend" -> {
                return contend(lock, w[3], number(w, 4), number(w, 5), number(w, 6));
            }
            case "cycles" -> {
                for (long n = number(w, 3); n > 0; n--) {
                    lock.lock();
                    lock.unlock();
                }
            }
            default -> throw new IllegalArgumentException("unknown command " + w[1]);
        }
        return "";
    }

    /** Counts on a counter that only the lock protects, as often as it can in the time. */
    private String contend(RedisDistributedLock lock, String counter, long holdMicros, long pauseMicros, long forMillis) {
        long end = System.nanoTime() + forMillis * 1_000_000;
        long acquisitions = 0;
        long longest = 0;
        while (System.nanoTime() < end) {
            long start = System.nanoTime();
            lock.lock();
            longest = Math.max(longest, System.nanoTime() - start);
            try {
                String value = plain.get(counter);
                rest(holdMicros);
                plain.set(counter, Long.toString(value == null ? 1 : Long.parseLong(value) + 1));
            } finally {
                lock.unlock();
            }
            acquisitions++;
            rest(pauseMicros);
        }
        return acquisitions + " " + longest / 1_000;
    }

    private static void rest(long micros) {
        long end = System.nanoTime() + micros * 1_000;
        for (long left = micros * 1_000; left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private static long number(String[] words, int at) {
        return Long.parseLong(words[at]);
    }
}
