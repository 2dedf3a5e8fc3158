package designlock;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Runs one renewal task per lock key (sections 4.2.3 and 11.3). */
final class RenewalManager {
    private final ScheduledExecutorService scheduler;
    private final Map<String, ScheduledFuture<?>> renewalTasks = new ConcurrentHashMap<>();

    RenewalManager(ScheduledExecutorService scheduler) {
        this.scheduler = scheduler;
    }

    void startRenewal(String lockKey, Runnable renewalTask, long periodMillis) {
        ScheduledFuture<?> task =
                scheduler.scheduleAtFixedRate(renewalTask, periodMillis, periodMillis, TimeUnit.MILLISECONDS);
        cancel(renewalTasks.put(lockKey, task));
    }

    void stopRenewal(String lockKey) {
        cancel(renewalTasks.remove(lockKey));
    }

    /** False if no task is scheduled, or if it ended by an exception. */
    boolean isRunning(String lockKey) {
        ScheduledFuture<?> task = renewalTasks.get(lockKey);
        return task != null && !task.isDone();
    }

    private static void cancel(ScheduledFuture<?> task) {
        if (task != null) {
            task.cancel(false);
        }
    }
}
