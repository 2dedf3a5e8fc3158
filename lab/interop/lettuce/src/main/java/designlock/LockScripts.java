package designlock;

/**
 * The scripts of the design document, sections 7 and 13, word for word.
 * KEYS[1] is the lock's key, ARGV[1] the lease in milliseconds, ARGV[2] the holder.
 */
final class LockScripts {
    /** 7.1: 1 if the holder has the lock now (again), 0 if somebody else has it. */
    static final String ACQUIRE = """
            if redis.call('exists', KEYS[1]) == 0 then
                redis.call('hset', KEYS[1], ARGV[2], 1)
                redis.call('pexpire', KEYS[1], ARGV[1])
                return 1
            else
                if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
                    redis.call('hincrby', KEYS[1], ARGV[2], 1)
                    redis.call('pexpire', KEYS[1], ARGV[1])
                    return 1
                else
                    return 0
                end
            end
            """;

    /** 7.2: 0 if the holder does not have the lock; 1 both for one hold less and for the last one. */
    static final String RELEASE = """
            if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
                return 0
            else
                local counter = redis.call('hincrby', KEYS[1], ARGV[2], -1)
                if counter > 0 then
                    redis.call('pexpire', KEYS[1], ARGV[1])
                    return 1
                else
                    redis.call('del', KEYS[1])
                    return 1
                end
            end
            """;

    /** 7.3: 0 if the holder does not have the lock. */
    static final String RENEW = """
            if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
                redis.call('pexpire', KEYS[1], ARGV[1])
                return 1
            else
                return 0
            end
            """;

    /** 7.4: whether the holder has the lock. */
    static final String CHECK = """
            if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
                return 1
            else
                return 0
            end
            """;

    private LockScripts() {}
}
