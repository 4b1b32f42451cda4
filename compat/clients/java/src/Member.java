import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer with its thread. Only that thread touches the library's object: it polls, keeps what came until {@code take} asks for
 * it, and between two polls carries out what requests want.
 */
final class Member implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(50);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Thread thread;
    private final ConcurrentLinkedQueue<Runnable> asked = new ConcurrentLinkedQueue<>();
    // Guarded by this object's lock.
    private final ArrayDeque<ObjectNode> records = new ArrayDeque<>();
    private List<TopicPartition> assignment = List.of();
    private Throwable failure;
    private volatile boolean closing;
    private volatile boolean stalled;
    // For a member that works by itself instead of keeping records for {@code take}.
    private final Work work;

    Member(JsonNode a) {
        work = a.has("work") ? new Work(a.get("work")) : null;
        consumer = new KafkaConsumer<>(config(a), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        if (a.has("assign")) {
            Map<TopicPartition, Long> places = new LinkedHashMap<>();
            a.get("assign").forEach(row -> places.put(partition(row), row.get(2).asLong()));
            consumer.assign(places.keySet());
            places.forEach((where, offset) -> {
                if (offset == -2) {
                    consumer.seekToBeginning(List.of(where));
                } else if (offset == -1) {
                    consumer.seekToEnd(List.of(where));
                } else {
                    consumer.seek(where, offset);
                }
            });
        } else {
            Set<String> topics = new HashSet<>();
            a.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, this);
        }
        thread = new Thread(this::run, a.get("name").asText());
        thread.setDaemon(true);
        thread.start();
    }

    private static Properties config(JsonNode a) {
        Properties config = new Properties();
        config.put("bootstrap.servers", a.get("bootstrap").asText());
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", a.path("reset").asText("earliest"));
        config.put("fetch.max.wait.ms", 200);
        config.put("allow.auto.create.topics", a.path("auto_create").asBoolean(false));
        config.put("reconnect.backoff.ms", 50);
        config.put("reconnect.backoff.max.ms", 500);
        config.put("retry.backoff.ms", 50);
        config.put("max.poll.records", a.path("work").path("batch").asInt(500));
        config.put("isolation.level", a.path("isolation").asText("read_uncommitted"));
        config.put("metadata.max.age.ms", a.path("refresh_ms").asInt(300000));
        config.put("max.poll.interval.ms", a.path("max_poll_ms").asInt(300000));
        config.put("default.api.timeout.ms", 30000);
        if (a.has("fetch_bytes")) {
            config.put("max.partition.fetch.bytes", a.get("fetch_bytes").asInt());
            config.put("fetch.max.bytes", a.get("fetch_bytes").asInt());
        }
        if (!a.has("group")) {
            return config;
        }
        config.put("group.id", a.get("group").asText());
        if (a.has("instance")) {
            config.put("group.instance.id", a.get("instance").asText());
        }
        if (a.path("protocol").asText("").equals("consumer")) {
            config.put("group.protocol", "consumer");
            if (a.has("assignor")) {
                config.put("group.remote.assignor", a.get("assignor").asText());
            }
        } else {
            config.put("session.timeout.ms", a.path("session_ms").asInt(6000));
            config.put("heartbeat.interval.ms", 500);
            config.put("partition.assignment.strategy", assignor(a.path("assignor").asText("range")));
        }
        return config;
    }

    private static String assignor(String name) {
        String family = "org.apache.kafka.clients.consumer.";
        return switch (name) {
            case "roundrobin" -> family + "RoundRobinAssignor";
            case "sticky" -> family + "StickyAssignor";
            case "cooperative-sticky" -> family + "CooperativeStickyAssignor";
            default -> family + "RangeAssignor";
        };
    }

    private static TopicPartition partition(JsonNode row) {
        return new TopicPartition(row.get(0).asText(), row.get(1).asInt());
    }

    private void run() {
        while (!closing) {
            for (Runnable one = asked.poll(); one != null; one = asked.poll()) {
                one.run();
            }
            if (closing) {
                return;
            }
            try {
                if (stalled) {
                    synchronized (this) {
                        wait(50);
                    }
                } else {
                    ConsumerRecords<byte[], byte[]> found = consumer.poll(POLL);
                    if (work == null) {
                        found.forEach(this::keep);
                    } else if (!found.isEmpty()) {
                        work.on(found, consumer);
                    }
                    note();
                }
            } catch (Exception error) {
                error.printStackTrace();
                if (work != null) {
                    work.note("F", "poll", error);
                }
                synchronized (this) {
                    failure = error;
                    notifyAll();
                }
            }
        }
    }

    private synchronized void keep(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode row = Driver.JSON.createObjectNode();
        row.put("topic", record.topic()).put("partition", record.partition()).put("offset", record.offset());
        row.put("key", Driver.text(record.key())).put("value", Driver.text(record.value())).put("timestamp", record.timestamp());
        ArrayNode headers = row.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(Driver.text(header.value()));
        }
        records.add(row);
        notifyAll();
    }

    private void note() {
        List<TopicPartition> held = consumer.assignment().stream()
            .sorted(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition)).toList();
        synchronized (this) {
            assignment = held;
        }
    }

    synchronized JsonNode take(int max, long waitMs) throws InterruptedException {
        long deadline = System.currentTimeMillis() + waitMs;
        while (records.isEmpty() && failure == null && System.currentTimeMillis() < deadline) {
            wait(Math.max(1, deadline - System.currentTimeMillis()));
        }
        ObjectNode said = Driver.JSON.createObjectNode();
        ArrayNode rows = said.putArray("records");
        while (!records.isEmpty() && rows.size() < max) {
            rows.add(records.poll());
        }
        ArrayNode held = said.putArray("assignment");
        assignment.forEach(one -> held.addArray().add(one.topic()).add(one.partition()));
        if (failure != null) {
            said.set("error", Driver.describe(failure));
            failure = null;
        }
        return said;
    }

    private synchronized void drop(Collection<TopicPartition> partitions) {
        records.removeIf(row -> partitions.contains(new TopicPartition(row.get("topic").asText(), row.get("partition").asInt())));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        drop(partitions);
        if (work != null && !partitions.isEmpty()) {
            work.note("V");
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        // The assignment is noted after each poll.
    }

    private <T> T ask(Callable<T> action) throws Exception {
        CompletableFuture<T> answer = new CompletableFuture<>();
        asked.add(() -> {
            try {
                answer.complete(action.call());
            } catch (Throwable error) {
                answer.completeExceptionally(error);
            }
        });
        try {
            return answer.get(40, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception inner ? inner : error;
        }
    }

    JsonNode operation(String operation, JsonNode a) throws Exception {
        ObjectNode said = Driver.JSON.createObjectNode();
        switch (operation) {
            case "stall" -> stalled = a.get("stalled").asBoolean();
            case "commit" -> {
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                a.get("offsets").forEach(row ->
                    offsets.put(partition(row), new OffsetAndMetadata(row.get(2).asLong(), row.get(3).asText())));
                ask(() -> {
                    consumer.commitSync(offsets);
                    return null;
                });
            }
            case "committed" -> {
                Set<TopicPartition> asked = new HashSet<>();
                a.get("partitions").forEach(row -> asked.add(partition(row)));
                Map<TopicPartition, OffsetAndMetadata> found = ask(() -> consumer.committed(asked));
                ArrayNode rows = said.putArray("offsets");
                for (TopicPartition one : asked) {
                    OffsetAndMetadata at = found.get(one);
                    rows.addArray().add(one.topic()).add(one.partition())
                        .add(at == null ? -1 : at.offset()).add(at == null ? "" : at.metadata());
                }
            }
            case "seek" -> {
                TopicPartition where = new TopicPartition(a.get("topic").asText(), a.get("partition").asInt());
                ask(() -> {
                    consumer.seek(where, a.get("offset").asLong());
                    drop(List.of(where));
                    return null;
                });
            }
            case "offsets_for_times" -> {
                TopicPartition where = new TopicPartition(a.get("topic").asText(), a.get("partition").asInt());
                Map<TopicPartition, OffsetAndTimestamp> found =
                    ask(() -> consumer.offsetsForTimes(Map.of(where, a.get("timestamp").asLong())));
                OffsetAndTimestamp at = found.get(where);
                said.put("offset", at == null ? -1 : at.offset());
            }
            default -> throw new IllegalArgumentException(operation);
        }
        return said;
    }

    void close() throws Exception {
        ask(() -> {
            closing = true;
            consumer.close();
            if (work != null) {
                work.note("E");
            }
            return null;
        });
        thread.join(5000);
    }
}
