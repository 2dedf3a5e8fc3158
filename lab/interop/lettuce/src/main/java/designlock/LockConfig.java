package designlock;

import java.util.concurrent.TimeUnit;

/** The settings of one lock (section 12.3). The builder takes seconds, as in the document; inside all is milliseconds. */
final class LockConfig {
    final String lockKey;
    final long leaseMillis;
    final long renewalMillis;
    final long watchdogMillis;
    final boolean fair;
    /** How long a waiter relies on notifications alone. The document has no such setting. */
    final long pollMillis;
    /** Whether unlock returns before Redis has answered the PUBLISH. The document leaves it open. */
    final boolean asyncPublish;

    /** Whether each tryAcquire that AQS makes asks Redis: up to 257 times for one wake-up in vain. */
    final boolean eager;

    private LockConfig(Builder b) {
        lockKey = b.lockKey;
        leaseMillis = b.leaseMillis;
        renewalMillis = b.renewalMillis > 0 ? b.renewalMillis : Math.max(1, b.leaseMillis / 3);
        watchdogMillis = b.watchdogMillis;
        pollMillis = b.pollMillis;
        fair = b.fair;
        asyncPublish = b.asyncPublish;
        eager = b.eager;
        if (lockKey == null || lockKey.isEmpty()) {
            throw new IllegalArgumentException("lockKey is empty");
        }
        if (renewalMillis >= leaseMillis) {
            throw new IllegalArgumentException("renewalTime must be below leaseTime");
        }
        if (leaseMillis <= 0 || watchdogMillis <= 0 || pollMillis <= 0) {
            throw new IllegalArgumentException("times must be above 0");
        }
    }

    static Builder builder() {
        return new Builder();
    }

    static final class Builder {
        private String lockKey;
        private long leaseMillis = 30_000;
        private long renewalMillis; // 0: a third of the lease
        private long watchdogMillis = 5_000;
        private long pollMillis = 1_000;
        private boolean fair;
        private boolean asyncPublish;
        private boolean eager;

        Builder lockKey(String key) {
            lockKey = key;
            return this;
        }

        Builder leaseTime(long seconds) {
            return leaseMillis(TimeUnit.SECONDS.toMillis(seconds));
        }

        Builder renewalTime(long seconds) {
            return renewalMillis(TimeUnit.SECONDS.toMillis(seconds));
        }

        Builder watchdogPeriod(long seconds) {
            return watchdogMillis(TimeUnit.SECONDS.toMillis(seconds));
        }

        Builder leaseMillis(long ms) {
            leaseMillis = ms;
            return this;
        }

        Builder renewalMillis(long ms) {
            renewalMillis = ms;
            return this;
        }

        Builder watchdogMillis(long ms) {
            watchdogMillis = ms;
            return this;
        }

        Builder pollMillis(long ms) {
            pollMillis = ms;
            return this;
        }

        Builder fair(boolean on) {
            fair = on;
            return this;
        }

        Builder asyncPublish(boolean on) {
            asyncPublish = on;
            return this;
        }

        Builder eager(boolean on) {
            eager = on;
            return this;
        }

        LockConfig build() {
            return new LockConfig(this);
        }
    }
}
