package designlock;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.UncheckedIOException;

/** The message of a release (section 10.5.2). releaseTime is in milliseconds since 1970. */
@JsonPropertyOrder({"lockKey", "releaseTime", "holder"})
record ReleaseMessage(String lockKey, long releaseTime, String holder) {
    /** Jackson's defaults, so an unknown field is an error, as in any program that did not think of it. */
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES);

    /** The channel of a lock (section 10.5.1). */
    static String channel(String lockKey) {
        return "lock:release:" + lockKey;
    }

    /** Loads what JSON needs, some 100 ms that the first release would take longer otherwise. */
    static void warmUp() throws JsonProcessingException {
        parse(new ReleaseMessage("", 0, "").toJson());
    }

    String toJson() {
        try {
            return JSON.writeValueAsString(this);
        } catch (JsonProcessingException e) {
            throw new UncheckedIOException(e);
        }
    }

    static ReleaseMessage parse(String json) throws JsonProcessingException {
        return JSON.readValue(json, ReleaseMessage.class);
    }
}
