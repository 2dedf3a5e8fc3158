package redissonpeer;

import java.util.Map;
import java.util.Random;
import java.util.StringJoiner;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** The commands of the line protocol: words are thread, command, arguments. */
final class Commands {
    private final RedissonClient client;
    private final String kind;
    /** One object for each lock, as programs keep them. */
    private final Map<String, RLock> locks = new ConcurrentHashMap<>();

    Commands(Options options) {
        client = Redisson.create(options.config);
        kind = options.kind;
    }

    private RLock lock(String key) {
        return locks.computeIfAbsent(key, k -> switch (kind) {
            case "fair" -> client.getFairLock(k);
            case "fenced" -> client.getFencedLock(k);
            default -> client.getLock(k);
        });
    }

    Object run(String[] w) throws Exception {
        if (w[1].equals("threadid")) {
            return client.getId() + ":" + Thread.currentThread().getId();
        }
        if (w[1].equals("share")) {
            return share(w[2], number(w, 3), number(w, 4), number(w, 5));
        }
        RLock lock = lock(w[2]);
        switch (w[1]) {
            case "lock" -> lock.lock();
            case "lockfor" -> lock.lock(number(w, 3), TimeUnit.MILLISECONDS);
            case "lockformicros" -> lock.lock(number(w, 3), TimeUnit.MICROSECONDS);
            case "unlock" -> lock.unlock();
            case "trylock" -> {
                return lock.tryLock(number(w, 3), TimeUnit.MILLISECONDS);
            }
            case "tryfor" -> {
                return lock.tryLock(number(w, 3), number(w, 4), TimeUnit.MILLISECONDS);
            }
            case "held" -> {
                return lock.isHeldByCurrentThread();
            }
            case "holds" -> {
                return lock.getHoldCount();
            }
            case "locked" -> {
                return lock.isLocked();
            }
            case "ttl" -> {
                return lock.remainTimeToLive();
            }
            case "force" -> {
                return lock.forceUnlock();
            }
            case "token" -> {
                return ((RFencedLock) lock).lockAndGetToken();
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
            // Begins so many locks and does not wait for them: each is one more thread's.
            case "holdmany" -> {
                for (long n = number(w, 3); n > 0; n--) {
                    client.getLock(w[2] + n).lockAsync(n).toCompletableFuture().get();
                }
            }
            // An acquire that its thread gives up while the answer is on its way.
            case "interrupted" -> {
                Thread.currentThread().interrupt();
                try {
                    lock.lockInterruptibly();
                } finally {
                    Thread.interrupted();
                }
            }
            default -> throw new IllegalArgumentException("unknown command " + w[1]);
        }
        return "";
    }

    /** Counts on a counter that only the lock protects, as often as it can in the time. */
    private String contend(RLock lock, String counter, long holdMicros, long pauseMicros, long forMillis) {
        RBucket<String> n = client.getBucket(counter, StringCodec.INSTANCE);
        long end = System.nanoTime() + forMillis * 1_000_000;
        long acquisitions = 0;
        long longest = 0;
        while (System.nanoTime() < end) {
            long start = System.nanoTime();
            lock.lock();
            longest = Math.max(longest, System.nanoTime() - start);
            try {
                String value = n.get();
                rest(holdMicros);
                n.set(Long.toString(value == null ? 1 : Long.parseLong(value) + 1));
            } finally {
                lock.unlock();
            }
            acquisitions++;
            rest(pauseMicros);
        }
        return acquisitions + " " + longest / 1_000;
    }

    /**
     * Reads in so many of 100 acquisitions and writes in the others; with 0 takes one of 8 permits. Answers how often it came
     * in, and how long each write, or each permit, was waited for.
     */
    private String share(String key, long reads, long holdMicros, long forMillis) throws Exception {
        RReadWriteLock lock = client.getReadWriteLock(key);
        RPermitExpirableSemaphore permits = client.getPermitExpirableSemaphore(key);
        if (reads == 0) {
            permits.trySetPermits(8);
        }
        Random random = new Random();
        StringJoiner waits = new StringJoiner(" ");
        long acquisitions = 0;
        for (long end = System.nanoTime() + forMillis * 1_000_000; System.nanoTime() < end; acquisitions++) {
            boolean write = random.nextInt(100) >= reads;
            RLock half = write ? lock.writeLock() : lock.readLock();
            String permit = "";
            long start = System.nanoTime();
            if (reads == 0) {
                permit = permits.acquire();
            } else {
                half.lock();
            }
            if (write) {
                waits.add(Long.toString((System.nanoTime() - start) / 1_000));
            }
            rest(holdMicros);
            if (reads == 0) {
                permits.release(permit);
            } else {
                half.unlock();
            }
        }
        return acquisitions + " " + waits;
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
