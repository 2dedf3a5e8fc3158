package designlock;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * The channels of section 10.5: PUBLISH, and a way of listening. Lettuce subscribes again after a reconnect.
 */
final class ReleaseNotices extends RedisPubSubAdapter<String, String> {
    enum Listening {
        /** SUBSCRIBE for each lock. */
        BY_CHANNEL,
        /** One PSUBSCRIBE for all, as a Spring listener container with a PatternTopic does it. */
        BY_PATTERN,
        /** Not at all: waiters poll. */
        NONE
    }

    private static final String PATTERN = ReleaseMessage.channel("*");

    private final LettuceClient client;
    private final StatefulRedisPubSubConnection<String, String> connection;
    private final Listening listening;
    private final ScheduledExecutorService scheduler;
    /** How long a message waits for its turn in this program, as behind an executor or a random delay. */
    private final long delayMicros;
    /** What to wake, by channel. */
    private final Map<String, Runnable> waiting = new ConcurrentHashMap<>();

    ReleaseNotices(
            LettuceClient client, Listening listening, ScheduledExecutorService scheduler, long delayMicros) {
        this.client = client;
        this.listening = listening;
        this.scheduler = scheduler;
        this.delayMicros = delayMicros;
        connection = client.connectPubSub();
        connection.addListener(this);
        if (listening == Listening.BY_PATTERN) {
            LettuceClient.await(connection.async().psubscribe(PATTERN));
        }
    }

    /** Calls wake at every release of the lock, and once the subscription is confirmed. Once per lock is enough. */
    void listen(String lockKey, Runnable wake) {
        String channel = ReleaseMessage.channel(lockKey);
        if (waiting.putIfAbsent(channel, wake) != null) {
            return;
        }
        if (listening != Listening.BY_CHANNEL) {
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
        if (waiting.remove(channel) != null && listening == Listening.BY_CHANNEL) {
            connection.async().unsubscribe(channel);
        }
    }

    /** Section 13.4.2. A failure is not the caller's: others find out by their poll. */
    void announce(String lockKey, String holder, boolean async) {
        String message = new ReleaseMessage(lockKey, System.currentTimeMillis(), holder).toJson();
        try {
            var sent = client.publish(ReleaseMessage.channel(lockKey), message);
            if (!async) {
                LettuceClient.await(sent);
            }
        } catch (RuntimeException e) {
            Log.warn("release of " + lockKey + " not published", e);
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
        if (wake == null) {
            return;
        }
        if (delayMicros > 0) {
            scheduler.schedule(wake, delayMicros, TimeUnit.MICROSECONDS);
        } else {
            wake.run();
        }
    }
}
