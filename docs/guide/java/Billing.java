import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Works on orders as a member of the group "billing", until it is told to stop: java Billing.java NAME */
public class Billing {
    public static void main(String[] args) {
        String name = args[0];
        Map<String, Object> settings = Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, System.getenv().getOrDefault("BOOTSTRAP_SERVERS", "127.0.0.1:9092"),
            ConsumerConfig.GROUP_ID_CONFIG, "billing",
            ConsumerConfig.CLIENT_ID_CONFIG, "billing-" + name,
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
            ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 100);
        var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        stopOnSignal(consumer, Thread.currentThread());
        // Closing it leaves the group at once: the other members need not wait for the session to end.
        try (consumer) {
            consumer.subscribe(List.of("orders"));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
                for (ConsumerRecord<String, String> record : records) {
                    work(name, record);
                }
                if (!records.isEmpty()) {
                    consumer.commitSync();
                }
            }
        } catch (WakeupException stopped) {
            // As it was told.
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private static void work(String name, ConsumerRecord<String, String> record) throws InterruptedException {
        Thread.sleep(1);
        System.out.println(name + " " + record.key() + " " + record.value());
    }

    private static void stopOnSignal(KafkaConsumer<?, ?> consumer, Thread polling) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                polling.join();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }));
    }
}
