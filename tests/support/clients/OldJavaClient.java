import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What a Java client of any version from 0.10.2 on sees of a topic: BOOTSTRAP TOPIC CODEC COUNT.
 *
 * It writes COUNT records with each acks, reads them as a group of the topic's name and commits.
 * Lines of what it saw go to the standard output, each a word and what belongs to it.
 */
public class OldJavaClient {
    static final long TIME = 1_600_000_000_000L;
    static final String BYTES = "org.apache.kafka.common.serialization.ByteArray";

    public static void main(String[] words) throws Exception {
        String bootstrap = words[0];
        int count = Integer.parseInt(words[words.length - 1]);
        for (int at = 1; at + 2 < words.length; at += 2) {
            System.out.println("topic " + words[at]);
            write(bootstrap, words[at], words[at + 1], count);
            read(bootstrap, words[at], 3 * count);
            resume(bootstrap, words[at]);
        }
    }

    static Properties properties(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key.serializer", BYTES + "Serializer");
        properties.put("value.serializer", BYTES + "Serializer");
        properties.put("key.deserializer", BYTES + "Deserializer");
        properties.put("value.deserializer", BYTES + "Deserializer");
        return properties;
    }

    static void write(String bootstrap, String topic, String codec, int count) throws Exception {
        int number = 0;
        for (String acks : new String[] {"all", "1", "0"}) {
            Properties properties = properties(bootstrap);
            properties.put("compression.type", codec);
            properties.put("linger.ms", "20");
            properties.put("acks", acks);
            if (acks != "all") {
                properties.put("enable.idempotence", "false");
            }
            KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties);
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int end = number + count; number < end; number++) {
                byte[] value = number % 10 == 9 ? null : ("v" + number).getBytes();
                byte[] key = ("k" + number).getBytes();
                sent.add(producer.send(new ProducerRecord<>(topic, 0, TIME + number, key, value)));
            }
            producer.flush();
            for (Future<RecordMetadata> each : sent) {
                System.out.println("written " + acks + " " + each.get().offset());
            }
            producer.close();
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String group) {
        Properties properties = properties(bootstrap);
        properties.put("group.id", group);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(properties);
    }

    static void read(String bootstrap, String topic, int count) throws Exception {
        KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, topic);
        consumer.subscribe(Collections.singletonList(topic));
        for (int seen = 0; seen < count; ) {
            for (ConsumerRecord<byte[], byte[]> each : poll(consumer)) {
                String value = each.value() == null ? "-" : new String(each.value());
                System.out.println("read " + each.offset() + " " + (each.timestamp() - TIME)
                        + " " + new String(each.key()) + " " + value);
                seen++;
            }
        }
        consumer.commitSync();
        consumer.close();
    }

    /** Where the group goes on, and offsets by time. */
    static void resume(String bootstrap, String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<TopicPartition> all = Collections.singletonList(partition);
        KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, topic);
        consumer.assign(all);
        System.out.println("committed " + consumer.position(partition));
        System.out.println("ends " + consumer.beginningOffsets(all).get(partition)
                + " " + consumer.endOffsets(all).get(partition));
        Map<TopicPartition, Long> times = new HashMap<>();
        times.put(partition, TIME + 5);
        OffsetAndTimestamp found = consumer.offsetsForTimes(times).get(partition);
        System.out.println("time " + found.offset() + " " + (found.timestamp() - TIME));
        consumer.close();
    }

    /** Poll as all versions can: with milliseconds until 3.9, with a Duration since 2.0. */
    @SuppressWarnings("unchecked")
    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer)
            throws Exception {
        Object records;
        try {
            Class<?> duration = Class.forName("java.time.Duration");
            records = KafkaConsumer.class.getMethod("poll", duration)
                    .invoke(consumer, java.time.Duration.ofMillis(200));
        } catch (NoSuchMethodException old) {
            records = KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 200L);
        }
        return (ConsumerRecords<byte[], byte[]>) records;
    }
}
