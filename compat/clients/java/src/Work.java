import com.fasterxml.jackson.databind.JsonNode;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What an application does with records: it works on them for a while, writes down what it has done, and commits. The file survives a
 * kill of the process; the README has its lines.
 */
final class Work {
    final int batch;
    private final long recordUs;
    private final FileOutputStream log;

    Work(JsonNode a) {
        batch = a.get("batch").asInt();
        recordUs = a.get("record_us").asLong();
        try {
            log = new FileOutputStream(a.get("log").asText(), true);
        } catch (IOException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    private void write(String lines) {
        try {
            log.write(lines.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    void note(String kind, Object... words) {
        StringBuilder line = new StringBuilder(kind).append(' ').append(now());
        for (Object word : words) {
            line.append(' ').append(String.valueOf(word).replace('\n', ' '));
        }
        write(line.append('\n').toString());
    }

    void on(ConsumerRecords<byte[], byte[]> records, KafkaConsumer<byte[], byte[]> consumer) throws InterruptedException {
        long begun = now();
        Thread.sleep(records.count() * recordUs / 1000);
        long ended = now();
        StringBuilder rows = new StringBuilder();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            String head = record.value() == null ? "-" : new String(record.value(), StandardCharsets.UTF_8).split("\\|", 2)[0];
            rows.append("R ").append(begun).append(' ').append(ended).append(' ').append(record.partition()).append(' ')
                .append(record.offset()).append(' ').append(head).append('\n');
            offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        write(rows.toString());
        try {
            consumer.commitSync(offsets);
        } catch (RuntimeException error) {
            // The application goes on; what it did not commit comes again.
            note("F", "commit", error);
            return;
        }
        offsets.forEach((where, at) -> note("C", where.partition(), at.offset()));
    }
}
