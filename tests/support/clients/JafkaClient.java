import io.jafka.admin.AdminOperation;
import io.jafka.api.FetchRequest;
import io.jafka.api.MultiFetchResponse;
import io.jafka.api.ProducerRequest;
import io.jafka.consumer.SimpleConsumer;
import io.jafka.message.ByteBufferMessageSet;
import io.jafka.message.CompressionCodec;
import io.jafka.message.Message;
import io.jafka.message.MessageAndOffset;
import io.jafka.producer.Producer;
import io.jafka.producer.ProducerConfig;
import io.jafka.producer.StringProducerData;
import io.jafka.producer.SyncProducer;
import io.jafka.producer.SyncProducerConfig;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/**
 * Jafka's own Java clients, which a test commands: HOST PORT.
 *
 * Each line of the standard input is a command, its words separated by tabs; bytes are in hex. A
 * line of JSON responds to each: what the client saw, or the class of the error that it raised.
 */
public class JafkaClient {
    static String host;
    static int port;
    static SyncProducer sync;
    static SimpleConsumer consumer;
    static AdminOperation admin;

    public static void main(String[] words) throws Exception {
        host = words[0];
        port = Integer.parseInt(words[1]);
        sync = new SyncProducer(new SyncProducerConfig(properties()));
        consumer = new SimpleConsumer(host, port);
        admin = new AdminOperation(host, port);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String response;
            try {
                response = execute(line.split("\t"));
            } catch (Exception error) {
                response = "{\"error\": \"" + error.getClass().getSimpleName() + "\"}";
            }
            System.out.println(response);
            System.out.flush();
        }
    }

    static Properties properties() {
        Properties properties = new Properties();
        properties.put("host", host);
        properties.put("port", "" + port);
        return properties;
    }

    static String execute(String[] words) throws Exception {
        switch (words[0]) {
            case "produce":  // topic, partition, message set
                sync.send(words[1], number(words[2]), set(words[3]));
                return "{}";
            case "messages":  // topic, partition, codec, payloads
                sync.send(words[1], number(words[2]), encoded(words));
                return "{}";
            case "multiproduce":  // topic, partition and message set of each part
                List<ProducerRequest> parts = new ArrayList<>();
                for (int at = 1; at < words.length; at += 3) {
                    parts.add(new ProducerRequest(words[at], number(words[at + 1]), set(words[at + 2])));
                }
                sync.multiSend(parts);
                return "{}";
            case "producer":  // topic, partitions, codec, texts
                return producer(words);
            case "fetch":  // topic, partition, offset, size
                return fetched(consumer.fetch(request(words, 1)));
            case "multifetch":  // the same of each part
                List<FetchRequest> requests = new ArrayList<>();
                for (int at = 1; at < words.length; at += 4) {
                    requests.add(request(words, at));
                }
                return multifetched(consumer.multifetch(requests));
            case "offsets":  // topic, partition, time, count
                long[] offsets = consumer.getOffsetsBefore(
                        words[1], number(words[2]), Long.parseLong(words[3]), number(words[4]));
                return "{\"offsets\": " + Arrays.toString(offsets) + "}";
            case "latest":  // topic, partition
                return "{\"offset\": " + consumer.getLatestOffset(words[1], number(words[2])) + "}";
            case "create":  // topic, partitions, enlarge
                int partitions = admin.createPartitions(words[1], number(words[2]), words[3].equals("1"));
                return "{\"partitions\": " + partitions + "}";
            case "delete":  // topic, password
                String password = words.length > 2 ? words[2] : null;
                return "{\"deleted\": " + admin.deleteTopic(words[1], password) + "}";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    static String producer(String[] words) {
        Properties properties = new Properties();
        properties.put("broker.list", "0:" + host + ":" + port + ":" + words[2]);
        properties.put("compression.codec", words[3]);
        properties.put("serializer.class", "io.jafka.producer.serializer.StringEncoder");
        Producer<String, String> producer = new Producer<>(new ProducerConfig(properties));
        List<String> texts = Arrays.asList(words).subList(4, words.length);
        producer.send(new StringProducerData(words[1], texts));
        producer.close();
        return "{}";
    }

    static ByteBufferMessageSet encoded(String[] words) {
        Message[] messages = new Message[words.length - 4];
        for (int at = 4; at < words.length; at++) {
            messages[at - 4] = new Message(bytes(words[at]));
        }
        return new ByteBufferMessageSet(CompressionCodec.valueOf(number(words[3])), messages);
    }

    static FetchRequest request(String[] words, int at) {
        return new FetchRequest(
                words[at], number(words[at + 1]), Long.parseLong(words[at + 2]), number(words[at + 3]));
    }

    static String multifetched(MultiFetchResponse response) {
        List<String> sets = new ArrayList<>();
        for (ByteBufferMessageSet set : response) {
            sets.add(fetched(set));
        }
        return "{\"sets\": " + sets + "}";
    }

    static String fetched(ByteBufferMessageSet set) {
        List<String> messages = new ArrayList<>();
        if (set.getErrorCode().code == 0) {
            for (MessageAndOffset each : set) {
                messages.add("[\"" + hex(each.message.payload()) + "\", " + each.offset + "]");
            }
        }
        return "{\"code\": " + set.getErrorCode().code + ", \"valid_bytes\": "
                + set.getValidBytes() + ", \"messages\": " + messages + "}";
    }

    static int number(String word) {
        return Integer.parseInt(word);
    }

    static ByteBufferMessageSet set(String hex) {
        return new ByteBufferMessageSet(ByteBuffer.wrap(bytes(hex)));
    }

    static byte[] bytes(String hex) {
        byte[] found = new byte[hex.length() / 2];
        for (int at = 0; at < found.length; at++) {
            found[at] = (byte) Integer.parseInt(hex.substring(2 * at, 2 * at + 2), 16);
        }
        return found;
    }

    static String hex(ByteBuffer buffer) {
        StringBuilder text = new StringBuilder();
        while (buffer.hasRemaining()) {
            text.append(String.format("%02x", buffer.get()));
        }
        return text.toString();
    }
}
