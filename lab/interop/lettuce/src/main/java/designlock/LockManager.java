package designlock;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;

/** One lock object per key (section 4.2.2), so that the threads of a program share its queue. */
final class LockManager {
    private final Map<String, RedisDistributedLock> lockInstances = new ConcurrentHashMap<>();
    private final LockServices services;
    private final UnaryOperator<LockConfig.Builder> settings;

    LockManager(LockServices services, UnaryOperator<LockConfig.Builder> settings) {
        this.services = services;
        this.settings = settings;
    }

    RedisDistributedLock getLock(String lockKey) {
        return lockInstances.computeIfAbsent(lockKey, key ->
                new RedisDistributedLock(settings.apply(LockConfig.builder()).lockKey(key).build(), services));
    }

    void destroyLock(String lockKey) {
        if (lockInstances.remove(lockKey) != null) {
            services.notices().ignore(lockKey);
        }
    }
}
