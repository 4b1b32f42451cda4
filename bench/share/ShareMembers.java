import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a share group (KIP-932), each in a thread, working a millisecond on each record, in pieces of eight.
 *
 * Prints a line for each delivery: member, key, how many of the key came before, begin and end in microseconds.
 */
public final class ShareMembers {
    private static final String GROUP = "share";
    private static final int PIECE = 8;
    private static final long FORMING_NS = TimeUnit.SECONDS.toNanos(60);

    private record Delivery(int member, int key, int seq, long startUs, long doneUs) {}

    private final String address;
    private final String topic;
    private final long records;
    private final long limitNs;
    /** Until the first delivery, how long the group may take to form; from then on, how long the work may take. */
    private final AtomicLong deadlineNs = new AtomicLong();
    private final AtomicBoolean begun = new AtomicBoolean();
    private final long begin = System.nanoTime();
    private final ConcurrentHashMap<Long, Boolean> seen = new ConcurrentHashMap<>();
    private final AtomicLong distinct = new AtomicLong();
    private volatile Throwable failure;

    private ShareMembers(String[] args) {
        address = args[0];
        topic = args[1];
        records = Long.parseLong(args[3]);
        limitNs = TimeUnit.MILLISECONDS.toNanos(Long.parseLong(args[4]));
        deadlineNs.set(begin + FORMING_NS);
    }

    public static void main(String[] args) throws Exception {
        new ShareMembers(args).run(Integer.parseInt(args[2]));
    }

    private void run(int members) throws Exception {
        readFromTheStart();
        List<List<Delivery>> all = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < members; number++) {
            int member = number;
            List<Delivery> own = new ArrayList<>();
            all.add(own);
            Thread thread = new Thread(() -> {
                try {
                    work(member, own);
                } catch (Throwable thrown) {
                    failure = thrown;
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        StringBuilder text = new StringBuilder();
        for (List<Delivery> own : all) {
            for (Delivery one : own) {
                text.append(one.member).append(' ').append(one.key).append(' ').append(one.seq).append(' ')
                    .append(one.startUs).append(' ').append(one.doneUs).append('\n');
            }
        }
        System.out.print(text);
        System.out.flush();
    }

    private void readFromTheStart() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) address))) {
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, GROUP);
            AlterConfigOp set = new AlterConfigOp(
                new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(group, List.of(set))).all().get();
        }
    }

    private void work(int member, List<Delivery> own) throws InterruptedException {
        Properties config = new Properties();
        config.put("bootstrap.servers", address);
        config.put("group.id", GROUP);
        config.put("client.id", "member-" + member);
        try (var consumer = new KafkaShareConsumer<>(
                config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (distinct.get() < records && System.nanoTime() < deadlineNs.get() && failure == null) {
                List<ConsumerRecord<byte[], byte[]>> came = new ArrayList<>();
                consumer.poll(Duration.ofMillis(20)).forEach(came::add);
                for (int from = 0; from < came.size(); from += PIECE) {
                    piece(member, came.subList(from, Math.min(from + PIECE, came.size())), own);
                }
            }
        }
    }

    private void piece(int member, List<ConsumerRecord<byte[], byte[]>> came, List<Delivery> own)
            throws InterruptedException {
        if (begun.compareAndSet(false, true)) {
            deadlineNs.set(System.nanoTime() + limitNs);
        }
        long startUs = (System.nanoTime() - begin) / 1000;
        Thread.sleep(came.size());
        long doneUs = (System.nanoTime() - begin) / 1000;
        for (ConsumerRecord<byte[], byte[]> one : came) {
            ByteBuffer value = ByteBuffer.wrap(one.value());
            int key = value.getInt();
            int seq = value.getInt();
            own.add(new Delivery(member, key, seq, startUs, doneUs));
            if (seen.putIfAbsent(((long) key << 32) | seq, true) == null) {
                distinct.incrementAndGet();
            }
        }
    }
}
