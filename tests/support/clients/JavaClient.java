import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java client, driven by lines on stdin: one command with tab-separated arguments, answered by
 * one line that begins with "ok" or "error". One process serves a whole test run, since a JVM takes
 * a second to start. Records travel in files of lines:
 * partition, offset, timestamp, "log" or "create", key, value, headers; bytes in hex, "-" is null.
 */
public final class JavaClient {
    private static final HexFormat HEX = HexFormat.of();
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = "ok\t" + run(line.split("\t", -1));
            } catch (Exception error) {
                answer = "error\t" + String.valueOf(error).replaceAll("\\s", " ");
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String run(String[] words) throws Exception {
        return switch (words[0]) {
            case "write" -> write(words[1], words[2], words[3], Path.of(words[4]));
            case "read" -> read(words[1], Long.parseLong(words[2]), words[3], Path.of(words[4]));
            case "time" -> offsetForTime(words[1], Long.parseLong(words[2]));
            case "create" -> create(words[1], Integer.parseInt(words[2]), words[3]);
            case "delete" -> delete(words[1]);
            case "topics" -> topics();
            case "config" -> config(words[1]);
            case "cluster" -> cluster();
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private static byte[] bytes(String text) {
        return text.equals("-") ? null : HEX.parseHex(text);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : HEX.formatHex(bytes);
    }

    private static String write(String topic, String codec, String idempotent, Path file)
            throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "compression.type", codec,
            "enable.idempotence", idempotent,
            "acks", "all",
            "linger.ms", "50",
            "batch.size", "1000000",
            "buffer.memory", "134217728", // a batch for each of many partitions
            "delivery.timeout.ms", "20000",
            "request.timeout.ms", "10000");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        StringBuilder offsets = new StringBuilder();
        ByteArraySerializer plain = new ByteArraySerializer();
        try (var producer = new KafkaProducer<byte[], byte[]>(settings, plain, plain)) {
            for (String line : Files.readAllLines(file)) {
                String[] fields = line.split("\t", -1);
                Long timestamp = fields[2].equals("-") ? null : Long.valueOf(fields[2]);
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                    topic, Integer.valueOf(fields[0]), timestamp,
                    bytes(fields[4]), bytes(fields[5]));
                for (String header : fields[6].isEmpty() ? new String[0] : fields[6].split(",")) {
                    String[] pair = header.split("=", -1);
                    String name = new String(HEX.parseHex(pair[0]), StandardCharsets.UTF_8);
                    record.headers().add(name, bytes(pair[1]));
                }
                sent.add(producer.send(record));
            }
            for (Future<RecordMetadata> future : sent) {
                offsets.append(future.get().offset()).append(' ');
            }
        }
        return offsets.toString();
    }

    private static KafkaConsumer<byte[], byte[]> consumer() {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "enable.auto.commit", "false",
            "fetch.max.wait.ms", "50", // closing waits for a fetch that is under way
            "auto.offset.reset", "none");
        return new KafkaConsumer<>(
            settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** counts: partition=count,partition=count */
    private static String read(String topic, long start, String counts, Path file)
            throws Exception {
        Map<TopicPartition, Integer> missing = new HashMap<>();
        for (String pair : counts.split(",")) {
            String[] numbers = pair.split("=");
            missing.put(
                new TopicPartition(topic, Integer.parseInt(numbers[0])),
                Integer.valueOf(numbers[1]));
        }
        List<String> lines = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.assign(missing.keySet());
            missing.keySet().forEach(at -> consumer.seek(at, start));
            while (missing.values().stream().anyMatch(count -> count > 0)) {
                var polled = consumer.poll(PATIENCE);
                if (polled.isEmpty()) {
                    throw new IllegalStateException("records never came: " + missing);
                }
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    TopicPartition at = new TopicPartition(topic, record.partition());
                    if (missing.merge(at, -1, Integer::sum) >= 0) {
                        lines.add(line(record));
                    }
                }
            }
        }
        Files.write(file, lines);
        return "";
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            byte[] name = header.key().getBytes(StandardCharsets.UTF_8);
            headers.add(HEX.formatHex(name) + "=" + text(header.value()));
        }
        boolean isLog = record.timestampType() == TimestampType.LOG_APPEND_TIME;
        return String.join("\t",
            String.valueOf(record.partition()),
            String.valueOf(record.offset()),
            String.valueOf(record.timestamp()),
            isLog ? "log" : "create",
            text(record.key()),
            text(record.value()),
            String.join(",", headers));
    }

    private static String offsetForTime(String topic, long timestamp) {
        TopicPartition at = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            var answer = consumer.offsetsForTimes(Map.of(at, timestamp)).get(at);
            return answer == null ? "-" : String.valueOf(answer.offset());
        }
    }

    private static Admin admin() {
        return Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap));
    }

    /** config: key=value,key=value */
    private static String create(String name, int partitions, String config) throws Exception {
        Map<String, String> values = new HashMap<>();
        for (String pair : config.isEmpty() ? new String[0] : config.split(",")) {
            String[] words = pair.split("=", 2);
            values.put(words[0], words[1]);
        }
        try (Admin admin = admin()) {
            NewTopic topic = new NewTopic(name, partitions, (short) 1).configs(values);
            admin.createTopics(List.of(topic)).all().get();
        }
        return "";
    }

    private static String delete(String name) throws Exception {
        try (Admin admin = admin()) {
            admin.deleteTopics(List.of(name)).all().get();
        }
        return "";
    }

    private static String topics() throws Exception {
        try (Admin admin = admin()) {
            Collection<String> names = admin.listTopics().names().get();
            List<String> counts = new ArrayList<>();
            admin.describeTopics(names).allTopicNames().get().forEach(
                (name, topic) -> counts.add(name + "=" + topic.partitions().size()));
            return String.join("\t", counts);
        }
    }

    private static String config(String name) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
        try (Admin admin = admin()) {
            List<String> pairs = new ArrayList<>();
            admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().forEach(
                entry -> pairs.add(entry.name() + "=" + entry.value()));
            return String.join("\t", pairs);
        }
    }

    private static String cluster() throws Exception {
        try (Admin admin = admin()) {
            var described = admin.describeCluster();
            List<String> words = new ArrayList<>(List.of(described.clusterId().get()));
            described.nodes().get().forEach(node -> words.add(node.host() + ":" + node.port()));
            return String.join("\t", words);
        }
    }
}
