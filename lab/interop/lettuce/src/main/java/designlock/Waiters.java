package designlock;

import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * Wakes the waiters of one lock now and then while there are any. The PUBLISH is a command of its own
 * after the DEL, and a key that expires publishes nothing: without a poll such a lock stays free for ever.
 */
final class Waiters {
    private final ScheduledExecutorService scheduler;
    private final long pollMillis;
    private final Runnable wake;
    private int count;
    private ScheduledFuture<?> poll;

    Waiters(ScheduledExecutorService scheduler, long pollMillis, Runnable wake) {
        this.scheduler = scheduler;
        this.pollMillis = pollMillis;
        this.wake = wake;
    }

    synchronized void enter() {
        if (count++ == 0) {
            poll = scheduler.scheduleWithFixedDelay(wake, pollMillis, pollMillis, TimeUnit.MILLISECONDS);
        }
    }

    synchronized void leave() {
        if (--count == 0) {
            poll.cancel(false);
        }
    }
}
