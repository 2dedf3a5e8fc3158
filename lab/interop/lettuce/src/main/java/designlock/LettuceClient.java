package designlock;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The Redis commands of the locks (section 4.2.5): one connection for commands, shared by all threads. */
final class LettuceClient {
    private static final Duration TIMEOUT = Duration.ofSeconds(3);

    private final RedisClient redisClient;
    private final StatefulRedisConnection<String, String> connection;

    LettuceClient(String url) {
        ClientResources few = DefaultClientResources.builder()
                .ioThreadPoolSize(2).computationThreadPoolSize(2).build();
        RedisURI uri = RedisURI.create(url);
        uri.setTimeout(TIMEOUT);
        redisClient = RedisClient.create(few, uri);
        redisClient.setOptions(ClientOptions.builder().autoReconnect(true).build());
        connection = redisClient.connect();
    }

    boolean tryAcquire(String key, String value, long leaseMillis) {
        return await(eval(LockScripts.ACQUIRE, key, value, leaseMillis)) == 1;
    }

    boolean release(String key, String value, long leaseMillis) {
        return await(eval(LockScripts.RELEASE, key, value, leaseMillis)) == 1;
    }

    /** Release without an answer: for an acquisition whose answer did not come. */
    void releaseLater(String key, String value, long leaseMillis) {
        eval(LockScripts.RELEASE, key, value, leaseMillis);
    }

    boolean renew(String key, String value, long leaseMillis) {
        return await(eval(LockScripts.RENEW, key, value, leaseMillis)) == 1;
    }

    boolean isHolder(String key, String value, long leaseMillis) {
        return await(eval(LockScripts.CHECK, key, value, leaseMillis)) == 1;
    }

    boolean exists(String key) {
        return await(connection.async().exists(key)) == 1;
    }

    long ttl(String key) {
        return await(connection.async().pttl(key));
    }

    RedisFuture<Long> publish(String channel, String message) {
        return connection.async().publish(channel, message);
    }

    boolean isOpen() {
        return connection.isOpen();
    }

    StatefulRedisPubSubConnection<String, String> connectPubSub() {
        return redisClient.connectPubSub();
    }

    /** A connection with no lock in it, for the counter that the locks protect. */
    StatefulRedisConnection<String, String> connectPlain() {
        return redisClient.connect();
    }

    private RedisFuture<Long> eval(String script, String key, String value, long leaseMillis) {
        RedisAsyncCommands<String, String> redis = connection.async();
        return redis.eval(script, ScriptOutputType.INTEGER,
                new String[] {key}, Long.toString(leaseMillis), value);
    }

    /**
     * Waits for the answer even if the thread is interrupted, and keeps the interrupt for later:
     * a command that is under way cannot be taken back, and lettuce's own await forgets its answer.
     */
    static <T> T await(RedisFuture<T> future) {
        boolean interrupted = false;
        long deadline = System.nanoTime() + TIMEOUT.toNanos();
        try {
            while (true) {
                try {
                    return future.toCompletableFuture().get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
                } catch (InterruptedException e) {
                    interrupted = true;
                } catch (ExecutionException e) {
                    throw e.getCause() instanceof RedisException r ? r : new RedisException(e.getCause());
                } catch (TimeoutException e) {
                    future.cancel(true);
                    throw new RedisCommandTimeoutException("no answer within " + TIMEOUT);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
