package designlock;

import java.util.concurrent.ScheduledExecutorService;

/** What all locks of one program share. */
record LockServices(
        LettuceClient client,
        ReleaseNotices notices,
        RenewalManager renewals,
        ScheduledExecutorService scheduler,
        MetricsCollector metrics,
        HolderNames names) {}
