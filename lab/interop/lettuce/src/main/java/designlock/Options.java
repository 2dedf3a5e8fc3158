package designlock;

/** The command line. */
final class Options {
    String url;
    ReleaseNotices.Listening listening = ReleaseNotices.Listening.BY_CHANNEL;
    long wakeDelayMicros;
    boolean fair;
    boolean asyncPublish;
    boolean eager;
    long leaseMillis = 30_000;
    long renewalMillis; // 0: a third of the lease
    long watchdogMillis = 5_000;
    long pollMillis = 1_000;

    static Options parse(String[] args) {
        Options o = new Options();
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--spring" -> o.listening = ReleaseNotices.Listening.BY_PATTERN;
                case "--poll-only" -> o.listening = ReleaseNotices.Listening.NONE;
                case "--wake-delay" -> o.wakeDelayMicros = Long.parseLong(args[++i]);
                case "--fair" -> o.fair = true;
                case "--async-publish" -> o.asyncPublish = true;
                case "--eager" -> o.eager = true;
                case "--lease" -> o.leaseMillis = Long.parseLong(args[++i]);
                case "--renewal" -> o.renewalMillis = Long.parseLong(args[++i]);
                case "--watchdog" -> o.watchdogMillis = Long.parseLong(args[++i]);
                case "--poll" -> o.pollMillis = Long.parseLong(args[++i]);
                default -> o.url = url(o, args[i]);
            }
        }
        if (o.url == null) {
            throw new IllegalArgumentException("usage: REDIS_URL [options]");
        }
        return o;
    }

    private static String url(Options o, String arg) {
        if (o.url != null || arg.startsWith("-")) {
            throw new IllegalArgumentException("unknown argument " + arg);
        }
        return arg;
    }

    LockConfig.Builder apply(LockConfig.Builder b) {
        return b.leaseMillis(leaseMillis).renewalMillis(renewalMillis).watchdogMillis(watchdogMillis)
                .pollMillis(pollMillis).fair(fair).asyncPublish(asyncPublish).eager(eager);
    }
}
