import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactional producers and consumers by name, driven by lines on stdin: one command with
 * tab-separated arguments, answered by one line that begins with "ok" or "error". An error is the
 * name of its class without the package, and its message.
 */
public final class JavaTransactions {
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private static final Map<String, KafkaConsumer<String, String>> consumers = new HashMap<>();
    private static final Map<String, ConsumerGroupMetadata> metadataOfClosed = new HashMap<>();
    private static final Map<String, Map<TopicPartition, OffsetAndMetadata>> positionsOfClosed =
        new HashMap<>();
    private static String bootstrap;
    private static Admin admin;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = "ok\t" + run(line.split("\t", -1));
            } catch (Exception thrown) {
                Throwable error = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
                String text = error.getClass().getSimpleName() + "\t" + error.getMessage();
                answer = "error\t" + text.replaceAll("[\\r\\n]", " ");
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String run(String[] words) throws Exception {
        switch (words[0]) {
            case "create" -> create(words[1], Integer.parseInt(words[2]));
            case "open" -> open(words[1], words[2], words[3]);
            case "begin" -> producers.get(words[1]).beginTransaction();
            case "send" -> {
                return send(words[1], words[2], Integer.parseInt(words[3]), words[4]);
            }
            case "offsets" -> producers.get(words[1])
                .sendOffsetsToTransaction(positions(words[2]), metadata(words[2]));
            case "commit" -> producers.get(words[1]).commitTransaction();
            case "abort" -> producers.get(words[1]).abortTransaction();
            case "close" -> producers.remove(words[1]).close();
            case "subscribe" -> subscribe(words[1], words[2], words[3]);
            case "poll" -> {
                return poll(consumers.get(words[1]), Integer.parseInt(words[2]));
            }
            case "leave" -> leave(words[1]);
            case "read" -> {
                return read(words[1], words[2]);
            }
            case "committed" -> {
                return committed(words[1], words[2]);
            }
            case "describe" -> {
                return describe(words[1]);
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    private static Map<String, Object> properties(Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(more);
        all.put("bootstrap.servers", bootstrap);
        return all;
    }

    private static void create(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    private static void open(String name, String transactionalId, String timeout) {
        KafkaProducer<String, String> producer = new KafkaProducer<>(
            properties(Map.of(
                "transactional.id", transactionalId,
                "transaction.timeout.ms", timeout,
                "max.block.ms", "20000"
            )),
            new StringSerializer(),
            new StringSerializer()
        );
        producer.initTransactions();
        producers.put(name, producer);
    }

    private static String send(String name, String topic, int partition, String value)
        throws Exception {
        ProducerRecord<String, String> record =
            new ProducerRecord<>(topic, partition, null, value);
        return "" + producers.get(name).send(record).get().offset();
    }

    /** A consumer that is closed keeps what it was as a member: a zombie may still use it. */
    private static void leave(String name) {
        positionsOfClosed.put(name, positions(name));
        metadataOfClosed.put(name, metadata(name));
        consumers.remove(name).close();
    }

    private static ConsumerGroupMetadata metadata(String name) {
        KafkaConsumer<String, String> consumer = consumers.get(name);
        return consumer == null ? metadataOfClosed.get(name) : consumer.groupMetadata();
    }

    private static Map<TopicPartition, OffsetAndMetadata> positions(String name) {
        KafkaConsumer<String, String> consumer = consumers.get(name);
        if (consumer == null) {
            return positionsOfClosed.get(name);
        }
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (TopicPartition partition : consumer.assignment()) {
            positions.put(partition, new OffsetAndMetadata(consumer.position(partition)));
        }
        return positions;
    }

    private static KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        return new KafkaConsumer<>(
            properties(more), new StringDeserializer(), new StringDeserializer()
        );
    }

    private static void subscribe(String name, String group, String topic) {
        KafkaConsumer<String, String> consumer = consumer(Map.of(
            "group.id", group,
            "enable.auto.commit", "false",
            "auto.offset.reset", "earliest",
            "isolation.level", "read_committed"
        ));
        consumer.subscribe(List.of(topic));
        consumers.put(name, consumer);
    }

    /** Values of the next records, as many as are wanted; the rest of a poll may be more. */
    private static String poll(KafkaConsumer<String, String> consumer, int count) {
        List<String> values = new ArrayList<>();
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (values.size() < count && System.nanoTime() < end) {
            for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                values.add(each.value());
            }
        }
        return String.join("\t", values);
    }

    /** Values of all records up to the end of the first partition, as this isolation sees it. */
    private static String read(String isolation, String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        Map<String, Object> isolated = Map.of("isolation.level", isolation);
        try (KafkaConsumer<String, String> consumer = consumer(isolated)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            List<String> values = new ArrayList<>();
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                    values.add(each.value());
                }
            }
            return String.join("\t", values);
        }
    }

    private static String committed(String group, String topic) throws Exception {
        OffsetAndMetadata found = admin.listConsumerGroupOffsets(group)
            .partitionsToOffsetAndMetadata().get().get(new TopicPartition(topic, 0));
        return found == null ? "" : "" + found.offset();
    }

    private static String describe(String transactionalId) throws Exception {
        TransactionDescription found = admin.describeTransactions(Set.of(transactionalId))
            .description(transactionalId).get();
        return String.join(
            "\t",
            found.state().toString(),
            "" + found.producerId(),
            "" + found.producerEpoch(),
            "" + found.transactionTimeoutMs()
        );
    }
}
