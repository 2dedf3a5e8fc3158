package designlock;

import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Checks a held lock at a fixed rate (sections 4.3 and 16). It never takes a lost lock again behind its thread's back. */
final class Watchdog {
    private final ScheduledExecutorService scheduler;
    private final LettuceClient client;
    private final RenewalManager renewals;
    private final MetricsCollector metrics;
    private final Upkeep upkeep;
    private ScheduledFuture<?> watchdogTask;

    Watchdog(LockServices services, Upkeep upkeep) {
        this.upkeep = upkeep;
        scheduler = services.scheduler();
        client = services.client();
        renewals = services.renewals();
        metrics = services.metrics();
    }

    synchronized void startWatchdog(RedisDistributedLock lock, Hold hold, long periodMillis) {
        stopWatchdog();
        watchdogTask = scheduler.scheduleAtFixedRate(
                () -> check(lock, hold), periodMillis, periodMillis, TimeUnit.MILLISECONDS);
    }

    synchronized void stopWatchdog() {
        if (watchdogTask != null) {
            watchdogTask.cancel(false);
            watchdogTask = null;
        }
    }

    /** The steps of section 16.3. A check that cannot be made is no verdict: the next one comes. */
    private void check(RedisDistributedLock lock, Hold hold) {
        if (!lock.isCurrent(hold)) {
            return;
        }
        metrics.watchdogChecks.increment();
        try {
            checkRenewalTask(lock, hold);
            checkThreadHealth(lock, hold);
            checkConnectionStatus();
            checkLockStatus(lock, hold);
        } catch (RuntimeException e) {
            Log.warn("watchdog of " + lock.key(), e);
        }
    }

    private void checkRenewalTask(RedisDistributedLock lock, Hold hold) {
        if (lock.isCurrent(hold) && !renewals.isRunning(lock.key())) {
            Log.warn("renewal of " + lock.key() + " had stopped", null);
            upkeep.startRenewal(hold);
        }
    }

    private void checkLockStatus(RedisDistributedLock lock, Hold hold) {
        if (!client.isHolder(lock.key(), hold.holder, hold.leaseMillis)) {
            lock.lose(hold, "the watchdog did not find its holder in Redis");
        }
    }

    /** A blocked thread cannot be told from a busy one; a dead one cannot unlock any more. */
    private void checkThreadHealth(RedisDistributedLock lock, Hold hold) {
        if (!hold.thread.isAlive()) {
            lock.releaseForDeadThread(hold);
        }
    }

    /** Lettuce reconnects by itself. */
    private void checkConnectionStatus() {
        if (!client.isOpen()) {
            Log.warn("no connection to Redis", null);
        }
    }
}
