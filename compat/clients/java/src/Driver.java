import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Speaks for Kafka's own Java client: reads requests, answers them one after the other. */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, Member> members = new HashMap<>();
    private final AdminOperations admin = new AdminOperations();

    public static void main(String[] arguments) throws Exception {
        // Standard output belongs to the protocol alone.
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        out.println(JSON.createObjectNode().put("ready", true).put("version", AppInfoParser.getVersion()));
        Driver driver = new Driver();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(driver.answer(JSON.readTree(line)));
        }
        System.exit(0);
    }

    private ObjectNode answer(JsonNode request) {
        ObjectNode said = JSON.createObjectNode().put("id", request.get("id").asInt());
        try {
            said.set("ok", carryOut(request.get("op").asText(), request));
        } catch (Throwable error) {
            error.printStackTrace();
            said.set("error", describe(error));
        }
        return said;
    }

    /** Kafka's number and name of an error, or its class. */
    static ObjectNode describe(Throwable error) {
        Throwable inner = error;
        while (inner.getCause() != null && !(inner instanceof ApiException)) {
            inner = inner.getCause();
        }
        ObjectNode said = JSON.createObjectNode();
        Errors known = inner instanceof ApiException ? Errors.forException(inner) : Errors.UNKNOWN_SERVER_ERROR;
        if (known != Errors.UNKNOWN_SERVER_ERROR) {
            said.put("name", known.name()).put("code", known.code());
        } else {
            said.put("name", inner.getClass().getSimpleName()).putNull("code");
        }
        return said.put("message", String.valueOf(inner.getMessage()));
    }

    private JsonNode carryOut(String operation, JsonNode a) throws Exception {
        ObjectNode nothing = JSON.createObjectNode();
        switch (operation) {
            case "producer_open":
                producers.put(name(a), openProducer(a));
                return nothing;
            case "produce":
                return produce(producers.get(name(a)), a);
            case "producer_close":
                producers.remove(name(a)).close();
                return nothing;
            case "consumer_open":
                members.put(name(a), new Member(a));
                return nothing;
            case "take":
                return members.get(name(a)).take(a.get("max").asInt(), a.get("wait_ms").asLong());
            case "consumer_close":
                members.remove(name(a)).close();
                return nothing;
            case "commit":
            case "committed":
            case "seek":
            case "stall":
            case "offsets_for_times":
                return members.get(name(a)).operation(operation, a);
            case "reset":
                for (String member : new ArrayList<>(members.keySet())) {
                    members.remove(member).close();
                }
                for (String producer : new ArrayList<>(producers.keySet())) {
                    producers.remove(producer).close(java.time.Duration.ofSeconds(5));
                }
                admin.close();
                return nothing;
            default:
                return admin.carryOut(operation, a);
        }
    }

    private static String name(JsonNode a) {
        return a.get("name").asText();
    }

    static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }

    private static KafkaProducer<byte[], byte[]> openProducer(JsonNode a) {
        Properties config = new Properties();
        config.put("bootstrap.servers", a.get("bootstrap").asText());
        config.put("compression.type", a.path("compression").asText("none"));
        boolean idempotent = a.path("idempotent").asBoolean(false);
        config.put("enable.idempotence", idempotent);
        config.put("acks", "all");
        config.put("linger.ms", 5);
        config.put("delivery.timeout.ms", Math.max(60000, a.path("timeout_ms").asInt(0)));
        config.put("request.timeout.ms", 20000);
        config.put("reconnect.backoff.ms", 50);
        config.put("reconnect.backoff.max.ms", 500);
        config.put("retry.backoff.ms", 50);
        if (!idempotent) {
            // Without sequence numbers, retries may not overtake each other.
            config.put("max.in.flight.requests.per.connection", 1);
        }
        if (a.has("retries")) {
            config.put("retries", a.get("retries").asInt());
        }
        if (a.has("max_bytes")) {
            config.put("max.request.size", a.get("max_bytes").asInt());
            config.put("buffer.memory", 64 << 20);
        } else {
            config.put("max.request.size", 1048576 + 4096);
        }
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static JsonNode produce(KafkaProducer<byte[], byte[]> producer, JsonNode a) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode r : a.get("records")) {
            Integer partition = r.get("partition").isNull() ? null : r.get("partition").asInt();
            Long timestamp = r.get("timestamp").isNull() ? null : r.get("timestamp").asLong();
            ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(a.get("topic").asText(), partition, timestamp, bytes(r.get("key")), bytes(r.get("value")));
            for (JsonNode header : r.get("headers")) {
                record.headers().add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
            }
            sent.add(producer.send(record));
        }
        ArrayNode results = JSON.createArrayNode();
        for (Future<RecordMetadata> future : sent) {
            RecordMetadata place;
            try {
                place = future.get(80, TimeUnit.SECONDS);
            } catch (ExecutionException error) {
                throw (Exception) error.getCause();
            }
            results.addArray().add(place.partition()).add(place.offset());
        }
        ObjectNode said = JSON.createObjectNode();
        said.set("results", results);
        return said;
    }
}
