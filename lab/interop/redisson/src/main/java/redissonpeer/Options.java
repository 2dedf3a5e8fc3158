package redissonpeer;

import org.redisson.config.BaseConfig;
import org.redisson.config.Config;

/** The command line. */
final class Options {
    final Config config = new Config();
    /** The kind of lock: plain, fair, fenced. */
    String kind = "plain";

    static Options parse(String[] args) {
        Options o = new Options();
        String[] urls = args[0].split(",");
        String topology = "single";
        String master = "";
        int timeout = 3000;
        for (int i = 1; i < args.length; i++) {
            switch (args[i]) {
                case "--cluster" -> topology = "cluster";
                case "--sentinel" -> {
                    topology = "sentinel";
                    master = args[++i];
                }
                case "--kind" -> o.kind = args[++i];
                case "--watchdog" -> o.config.setLockWatchdogTimeout(Long.parseLong(args[++i]));
                case "--batch" -> o.config.setLockWatchdogBatchSize(Integer.parseInt(args[++i]));
                case "--timeout" -> timeout = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("unknown option " + args[i]);
            }
        }
        // Several such programs run on two processors.
        o.config.setThreads(4).setNettyThreads(4);
        o.topology(topology, master, urls).setTimeout(timeout);
        return o;
    }

    private BaseConfig<?> topology(String topology, String master, String[] urls) {
        switch (topology) {
            case "cluster":
                return config.useClusterServers().addNodeAddress(urls).setScanInterval(500)
                        .setMasterConnectionMinimumIdleSize(2).setSlaveConnectionMinimumIdleSize(1);
            case "sentinel":
                return config.useSentinelServers().setMasterName(master).addSentinelAddress(urls).setScanInterval(500)
                        .setCheckSentinelsList(false)
                        .setMasterConnectionMinimumIdleSize(2).setSlaveConnectionMinimumIdleSize(1);
            default:
                return config.useSingleServer().setAddress(urls[0]).setConnectionMinimumIdleSize(2);
        }
    }

    private Options() {}
}
