package designlock;

/** What goes on beside a hold: its renewal and its watchdog (sections 6.2 and 10.3). */
final class Upkeep {
    private final RedisDistributedLock lock;
    private final LockConfig config;
    private final LockServices services;
    private final Watchdog watchdog;

    Upkeep(RedisDistributedLock lock, LockConfig config, LockServices services) {
        this.lock = lock;
        this.config = config;
        this.services = services;
        watchdog = new Watchdog(services, this);
    }

    /** A fixed lease has none. */
    void start(Hold hold) {
        if (hold.renewed) {
            startRenewal(hold);
            watchdog.startWatchdog(lock, hold, config.watchdogMillis);
        }
    }

    void stop(Hold hold) {
        if (hold.renewed) {
            services.renewals().stopRenewal(config.lockKey);
            watchdog.stopWatchdog();
        }
    }

    void startRenewal(Hold hold) {
        services.renewals().startRenewal(config.lockKey, () -> renew(hold), config.renewalMillis);
    }

    private void renew(Hold hold) {
        if (!lock.isCurrent(hold)) {
            return;
        }
        long before = System.nanoTime();
        try {
            if (services.client().renew(config.lockKey, hold.holder, hold.leaseMillis)) {
                hold.renewedAt = before;
                services.metrics().renewals.increment();
            } else {
                lock.lose(hold, "the renewal did not find its holder in Redis");
            }
        } catch (RuntimeException e) {
            Log.warn("renewal of " + config.lockKey, e);
            if (hold.isOver()) {
                lock.lose(hold, "not renewed within its lease");
            }
        }
    }
}
