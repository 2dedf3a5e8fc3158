package designlock;

/** One time that a thread of this program has the lock, from its first acquisition to its last release. */
final class Hold {
    final Thread thread;
    final String holder;
    /** How long Redis keeps the key without a renewal. */
    final long leaseMillis;
    /** Whether the renewal task keeps it. */
    final boolean renewed;
    /** System.nanoTime() before the last command that set the key's expiry. */
    volatile long renewedAt;

    Hold(Thread thread, String holder, long leaseMillis, boolean renewed, long renewedAt) {
        this.thread = thread;
        this.holder = holder;
        this.leaseMillis = leaseMillis;
        this.renewed = renewed;
        this.renewedAt = renewedAt;
    }

    /** Whether the lease is over by this program's clock: then Redis has it no more, or not for long. */
    boolean isOver() {
        return System.nanoTime() - renewedAt > leaseMillis * 1_000_000;
    }
}
