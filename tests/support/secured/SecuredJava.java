import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The Java client over secured listeners, driven by lines on stdin: "exchange" or "refusal", a file
 * of properties and further arguments, separated by tabs. Each is answered by one line.
 */
public final class SecuredJava {
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    public static void main(String[] arguments) throws Exception {
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
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(words[1])) {
            settings.load(file);
        }
        return switch (words[0]) {
            case "exchange" -> exchange(settings, words[2], words[3]);
            case "refusal" -> refusal(settings);
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private static String exchange(Properties settings, String topic, String value)
            throws Exception {
        StringSerializer text = new StringSerializer();
        try (var producer = new KafkaProducer<String, String>(settings, text, text)) {
            producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
        }
        settings.put("enable.auto.commit", "false");
        settings.put("fetch.max.wait.ms", "50"); // closing waits for a fetch that is under way
        StringDeserializer bytes = new StringDeserializer();
        try (var consumer = new KafkaConsumer<String, String>(settings, bytes, bytes)) {
            TopicPartition at = new TopicPartition(topic, 0);
            consumer.assign(List.of(at));
            consumer.seek(at, 0);
            return consumer.poll(PATIENCE).iterator().next().value();
        }
    }

    /** The class of the error, nanoseconds, and what the error and its causes say. */
    private static String refusal(Properties settings) throws Exception {
        long begin = System.nanoTime();
        try (Admin admin = Admin.create(settings)) {
            admin.describeCluster().clusterId().get();
        } catch (ExecutionException error) {
            long nanoseconds = System.nanoTime() - begin;
            Throwable kind = error.getCause();
            StringBuilder said = new StringBuilder();
            for (Throwable cause = kind; cause != null; cause = cause.getCause()) {
                said.append(cause.getMessage()).append(" / ");
            }
            String text = said.toString().replaceAll("\\s", " ");
            return kind.getClass().getSimpleName() + "\t" + nanoseconds + "\t" + text;
        }
        throw new IllegalStateException("the Java client got in");
    }
}
