package designlock;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * The lock of the design document, on AQS: threads of one program queue here, and the first of them
 * competes with other programs in Redis. State (section 5.1): bits 24-31 are 1 if locked, bits 16-23
 * count the holds.
 *
 * <p>AQS calls tryAcquire 6 times before it parks a thread, and 3, 5, 9 … 257 times after each wake-up that
 * ends in vain. So Redis is asked only if there was a signal since the last time it said no.
 */
final class RedisDistributedLock extends AbstractQueuedSynchronizer implements Lock {
    private static final int LOCKED = 1 << 24;
    private static final int ONE_HOLD = 1 << 16;
    private static final int MAX_HOLDS = 255;
    /** The argument of release that only wakes the first thread of the queue. */
    private static final int WAKE = 0;

    private final transient LockConfig config;
    private final transient LockServices services;
    private final transient LettuceClient client;
    private final transient Upkeep upkeep;
    private final transient Waiters waiters;
    private final transient Object guard = new Object();
    /** Whose lock it is in this program, null if nobody's. Changed under guard, together with the state. */
    private transient volatile Hold hold;

    /** Counts the reasons to ask Redis: a new caller, a release, a subscription, a poll. */
    private final AtomicLong signals = new AtomicLong();
    /** The signals before the last attempt in vain. */
    private transient volatile long answered = -1;
    /** The fixed lease that the calling thread wants, null for the renewed one. */
    private final transient ThreadLocal<Long> fixedLease = new ThreadLocal<>();

    RedisDistributedLock(LockConfig config, LockServices services) {
        this.config = config;
        this.services = services;
        client = services.client();
        upkeep = new Upkeep(this, config, services);
        waiters = new Waiters(services.scheduler(), config.pollMillis, this::wake);
    }

    String key() {
        return config.lockKey;
    }

    @Override
    public void lock() {
        if (!tryLock()) {
            startWaiting();
            try {
                acquire(1);
            } finally {
                waiters.leave();
            }
        }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
        tryLock(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
    }

    @Override
    public boolean tryLock() {
        signals.incrementAndGet();
        return tryAcquire(1);
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        long start = System.nanoTime();
        if (tryLock()) {
            return true;
        }
        startWaiting();
        try {
            return tryAcquireNanos(1, unit.toNanos(time) - (System.nanoTime() - start));
        } finally {
            waiters.leave();
        }
    }

    /** lock, with a lease that nothing renews. The document has none; services ask for it soon. */
    void lockFor(long leaseMillis) {
        fixedLease.set(leaseMillis);
        try {
            lock();
        } finally {
            fixedLease.remove();
        }
    }

    boolean tryLockFor(long time, long leaseMillis, TimeUnit unit) throws InterruptedException {
        fixedLease.set(unit.toMillis(leaseMillis));
        try {
            return tryLock(time, unit);
        } finally {
            fixedLease.remove();
        }
    }

    @Override
    public void unlock() {
        release(1);
    }

    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("no conditions across programs");
    }

    boolean isHeldByCurrentThread() {
        return getExclusiveOwnerThread() == Thread.currentThread();
    }

    int holds() {
        return isHeldByCurrentThread() ? (getState() >> 16) & 0xff : 0;
    }

    private void startWaiting() {
        waiters.enter();
        services.notices().listen(key(), this::wake);
    }

    /** Something happened: the first thread of the queue asks Redis again. */
    void wake() {
        signals.incrementAndGet();
        release(WAKE);
    }

    @Override
    protected boolean tryAcquire(int acquires) {
        if (isHeldByCurrentThread()) {
            return reenter(hold);
        }
        if (config.fair && hasQueuedPredecessors()) {
            return false;
        }
        Hold other = hold;
        if (other != null) {
            // A fixed lease ends without a word, and the thread may never come back.
            if (other.renewed || !other.isOver()) {
                return false;
            }
            lose(other, "its fixed lease is over");
        }
        long seen = signals.get();
        if (seen == answered && !config.eager) {
            return false;
        }
        if (!acquireInRedis()) {
            answered = seen;
            return false;
        }
        return true;
    }

    private boolean acquireInRedis() {
        Thread thread = Thread.currentThread();
        Long fixed = fixedLease.get();
        long lease = fixed == null ? config.leaseMillis : fixed;
        Hold mine = new Hold(thread, services.names().of(thread), lease, fixed == null, System.nanoTime());
        services.metrics().attempts.increment();
        try {
            if (!client.tryAcquire(key(), mine.holder, lease)) {
                return false;
            }
        } catch (RuntimeException e) {
            client.releaseLater(key(), mine.holder, lease); // It may have been carried out.
            throw e;
        }
        synchronized (guard) {
            if (!compareAndSetState(0, LOCKED | ONE_HOLD)) {
                // A thread of this program has it by its own account, and Redis has dropped it meanwhile.
                client.releaseLater(key(), mine.holder, lease);
                return false;
            }
            setExclusiveOwnerThread(thread);
            hold = mine;
            upkeep.start(mine);
        }
        services.metrics().acquisitions.increment();
        return true;
    }

    /** One hold more, here and in Redis, with the lease of the first one. */
    private boolean reenter(Hold mine) {
        if (mine == null) {
            return false;
        }
        if (holds() == MAX_HOLDS) {
            throw new IllegalMonitorStateException("more than " + MAX_HOLDS + " holds of " + key());
        }
        long before = System.nanoTime();
        if (!client.tryAcquire(key(), mine.holder, mine.leaseMillis)) {
            lose(mine, "somebody else has it");
            return false;
        }
        synchronized (guard) {
            if (hold != mine) {
                return false; // Lost while Redis was asked.
            }
            mine.renewedAt = before;
            setState(getState() + ONE_HOLD);
            return true;
        }
    }

    @Override
    protected boolean tryRelease(int releases) {
        if (releases == WAKE) {
            return true;
        }
        Hold mine = hold;
        boolean last;
        synchronized (guard) {
            if (mine == null || hold != mine || mine.thread != Thread.currentThread()) {
                throw new IllegalMonitorStateException(key() + " is not held by this thread");
            }
            last = holds() == 1;
            if (last) {
                upkeep.stop(mine);
            }
        }
        boolean had;
        try {
            had = client.release(key(), mine.holder, mine.leaseMillis);
        } catch (RuntimeException e) {
            // Nobody renews it any more, so it ends with its lease.
            if (last) {
                clear(mine);
                wake();
            }
            throw e;
        }
        if (!had) {
            lose(mine, "unlock did not find its holder in Redis");
            throw new IllegalMonitorStateException(key() + " was lost");
        }
        if (!last) {
            dropOne(mine);
            return false;
        }
        clear(mine);
        services.notices().announce(key(), mine.holder, config.asyncPublish);
        return true;
    }

    private void dropOne(Hold which) {
        synchronized (guard) {
            if (hold == which) {
                setState(getState() - ONE_HOLD);
            }
        }
    }

    boolean isCurrent(Hold which) {
        return hold == which;
    }

    /** Section 10.3: a lock that Redis does not have is given up here too, and its thread learns it at unlock. */
    void lose(Hold which, String why) {
        if (clear(which)) {
            services.metrics().lost.increment();
            Log.warn("lost " + key() + " of " + which.holder + ": " + why, null);
            wake();
        }
    }

    void releaseForDeadThread(Hold which) {
        int holds = (getState() >> 16) & 0xff;
        lose(which, "its thread is dead");
        for (int i = 0; i < holds && client.release(key(), which.holder, which.leaseMillis); i++) {
            Log.warn("released " + key() + " for its dead thread", null);
        }
        services.notices().announce(key(), which.holder, config.asyncPublish);
    }

    /** Whether it was held so until now. */
    private boolean clear(Hold which) {
        synchronized (guard) {
            if (hold != which) {
                return false;
            }
            upkeep.stop(which);
            hold = null;
            setExclusiveOwnerThread(null);
            setState(0);
            signals.incrementAndGet();
            return true;
        }
    }
}
