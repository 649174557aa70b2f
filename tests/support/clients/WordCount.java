import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Kafka Streams counts words: BOOTSTRAP APPLICATION INPUT OUTPUT STATE.
 *
 * Each word of the input writes "word=count" to the output, exactly once; there is no cache that
 * would leave some out. STATE is the folder of its stores.
 */
public final class WordCount {
    public static void main(String[] words) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", words[0]);
        properties.put("application.id", words[1]);
        properties.put("state.dir", words[4]);
        properties.put("processing.guarantee", "exactly_once_v2");
        properties.put("statestore.cache.max.bytes", "0");
        properties.put("num.stream.threads", "2");
        // Transactions last long enough to be killed in one, and dead members are missed soon.
        properties.put("commit.interval.ms", "500");
        properties.put("transaction.timeout.ms", "3000");
        properties.put("session.timeout.ms", "3000");
        properties.put("heartbeat.interval.ms", "300");
        properties.put("default.key.serde", Serdes.StringSerde.class.getName());
        properties.put("default.value.serde", Serdes.StringSerde.class.getName());

        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(words[2]);
        lines.flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.as("counts"))
            .toStream()
            .map((word, count) -> KeyValue.pair(word, word + "=" + count))
            .to(words[3]);

        CountDownLatch ended = new CountDownLatch(1);
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            ended.countDown();
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        ended.await();
        System.exit(1);
    }
}
