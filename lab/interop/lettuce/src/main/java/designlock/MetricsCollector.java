package designlock;

import java.util.concurrent.atomic.LongAdder;

/** The figures of section 14 that need no more than counting. */
final class MetricsCollector {
    final LongAdder attempts = new LongAdder();
    final LongAdder acquisitions = new LongAdder();
    final LongAdder renewals = new LongAdder();
    final LongAdder watchdogChecks = new LongAdder();
    final LongAdder lost = new LongAdder();

    @Override
    public String toString() {
        return "attempts=" + attempts + " acquisitions=" + acquisitions + " renewals=" + renewals
                + " watchdogChecks=" + watchdogChecks + " lost=" + lost;
    }
}
