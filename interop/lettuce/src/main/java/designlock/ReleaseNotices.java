package designlock;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The listening side of section 10.5: SUBSCRIBE per lock, or one PSUBSCRIBE for all (how a Spring
 * listener container with a PatternTopic does it). Lettuce subscribes again after a reconnect.
 */
final class ReleaseNotices extends RedisPubSubAdapter<String, String> {
    private static final String PATTERN = ReleaseMessage.channel("*");

    private final StatefulRedisPubSubConnection<String, String> connection;
    private final boolean byPattern;
    /** What to wake, by channel. */
    private final Map<String, Runnable> waiting = new ConcurrentHashMap<>();

    ReleaseNotices(LettuceClient client, boolean byPattern) {
        this.byPattern = byPattern;
        connection = client.connectPubSub();
        connection.addListener(this);
        if (byPattern) {
            LettuceClient.await(connection.async().psubscribe(PATTERN));
        }
    }

    /** Calls wake at every release of the lock, and once the subscription is confirmed. Once per lock is enough. */
    void listen(String lockKey, Runnable wake) {
        String channel = ReleaseMessage.channel(lockKey);
        if (waiting.putIfAbsent(channel, wake) != null) {
            return;
        }
        if (byPattern) {
            wake.run();
            return;
        }
        connection.async().subscribe(channel).whenComplete((ok, error) -> {
            if (error != null) {
                waiting.remove(channel, wake); // The next one who waits tries again.
                Log.warn("cannot subscribe to " + channel, error);
            }
        });
    }

    void ignore(String lockKey) {
        String channel = ReleaseMessage.channel(lockKey);
        if (waiting.remove(channel) != null && !byPattern) {
            connection.async().unsubscribe(channel);
        }
    }

    /** A release before this moment was not heard, also after a reconnect: everybody concerned tries again. */
    @Override
    public void subscribed(String channel, long count) {
        wake(channel);
    }

    @Override
    public void psubscribed(String pattern, long count) {
        waiting.values().forEach(Runnable::run);
    }

    @Override
    public void message(String channel, String json) {
        received(channel, json);
    }

    @Override
    public void message(String pattern, String channel, String json) {
        received(channel, json);
    }

    /** The message must be the document's; what cannot be read wakes nobody. */
    private void received(String channel, String json) {
        try {
            ReleaseMessage message = ReleaseMessage.parse(json);
            if (ReleaseMessage.channel(message.lockKey()).equals(channel)) {
                wake(channel);
            } else {
                Log.warn("message of another lock on " + channel + ": " + json, null);
            }
        } catch (JsonProcessingException e) {
            Log.warn("unreadable message on " + channel + ": " + json, e);
        }
    }

    private void wake(String channel) {
        Runnable wake = waiting.get(channel);
        if (wake != null) {
            wake.run();
        }
    }
}
