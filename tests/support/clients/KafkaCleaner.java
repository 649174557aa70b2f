import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.FileLogInputStream;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LastRecord;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's own cleaner, driven by lines on stdin: one command with tab-separated arguments, answered
 * by one line that begins with "ok" or "error". One process serves many logs.
 *
 * clean FOLDER RESULT END_OFFSET FIRST_DIRTY UNCLEANABLE KEYS_MAX NOW_MS NAME=VALUE... cleans
 * the log in a folder and writes to the file RESULT what the log holds then: lines of words, bytes
 * in hex, "-" is null. RESULT "-": nothing is written, for a measurement. What has a name is a
 * setting of the topic. The answer is the end of what is clean, and the nanoseconds that it took.
 */
public final class KafkaCleaner {
    private static final HexFormat HEX = HexFormat.of();
    private static final int IO_BUFFER = 512 * 1024; // log.cleaner.io.buffer.size: two of them
    private static final int SLOT_BYTES = 24;
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);
    private static final BrokerTopicStats STATS = new BrokerTopicStats();
    private static final FixedTime TIME = new FixedTime();

    public static void main(String[] arguments) throws Exception {
        SCHEDULER.startup();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = "ok\t" + clean(line.split("\t", -1));
            } catch (Throwable error) {
                answer = "error\t" + String.valueOf(error).replaceAll("\\s", " ");
            }
            System.out.println(answer);
            System.out.flush();
        }
        SCHEDULER.shutdown();
    }

    private static String clean(String[] words) throws Exception {
        long firstDirty = Long.parseLong(words[4]);
        long uncleanable = Long.parseLong(words[5]);
        int slots = Integer.parseInt(words[6]);
        TIME.now = Long.parseLong(words[7]);
        LogConfig config = config(List.of(words).subList(8, words.length));
        UnifiedLog log = open(new File(words[1]), config, Long.parseLong(words[3]));
        try {
            Throttler throttler = new Throttler(Double.MAX_VALUE, 1000, "bytes", "bytes", TIME);
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(slots * SLOT_BYTES), IO_BUFFER,
                config.maxMessageSize(), 1.0, throttler, TIME, partition -> { });
            LogToClean asked = new LogToClean(log, firstDirty, uncleanable, false);
            long began = System.nanoTime();
            Map.Entry<Long, CleanerStats> done = cleaner.clean(asked);
            long took = System.nanoTime() - began;
            if (!words[2].equals("-")) {
                write(log, Path.of(words[2]));
            }
            return done.getKey() + "\t" + took;
        } finally {
            log.close();
        }
    }

    private static LogConfig config(List<String> pairs) {
        Properties settings = new Properties();
        settings.put("cleanup.policy", "compact");
        settings.put("file.delete.delay.ms", "0");
        for (String pair : pairs) {
            settings.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
        }
        return new LogConfig(settings);
    }

    private static UnifiedLog open(File folder, LogConfig config, long endOffset) throws Exception {
        return UnifiedLog.create(folder, config, 0, endOffset, SCHEDULER, STATS, TIME, 900_000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000,
            new LogDirFailureChannel(1), true, Optional.empty());
    }

    private static void write(UnifiedLog log, Path result) throws Exception {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(result))) {
            for (LogSegment segment : log.logSegments()) {
                out.println("segment " + segment.baseOffset());
                for (FileLogInputStream.FileChannelRecordBatch batch : segment.log().batches()) {
                    write(batch, out);
                }
                for (AbortedTxn each : segment.txnIndex().allAbortedTxns()) {
                    out.println("aborted " + each.producerId() + " " + each.firstOffset() + " "
                        + each.lastOffset() + " " + each.lastStableOffset());
                }
            }
            Map<Long, LastRecord> producers = new TreeMap<>(log.lastRecordsOfActiveProducers());
            producers.forEach((id, last) -> out.println("producer " + id + " "
                + last.lastDataOffset().orElse(-1) + " " + last.producerEpoch()));
        }
    }

    private static void write(FileLogInputStream.FileChannelRecordBatch batch, PrintWriter out) {
        batch.ensureValid();
        boolean isStamped = batch.timestampType() == TimestampType.LOG_APPEND_TIME;
        out.println("batch " + batch.baseOffset() + " " + batch.lastOffset() + " "
            + batch.producerId() + " " + batch.producerEpoch() + " " + batch.baseSequence() + " "
            + batch.partitionLeaderEpoch() + " " + batch.isTransactional() + " "
            + batch.isControlBatch() + " " + isStamped + " " + batch.compressionType().id + " "
            + batch.deleteHorizonMs().orElse(-1) + " " + batch.maxTimestamp());
        for (Record record : batch) {
            StringBuilder headers = new StringBuilder();
            for (Header header : record.headers()) {
                byte[] key = header.key().getBytes(StandardCharsets.UTF_8);
                headers.append(" ").append(hex(ByteBuffer.wrap(key)));
                headers.append(" ").append(header.value() == null
                    ? "-" : hex(ByteBuffer.wrap(header.value())));
            }
            out.println("record " + record.offset() + " " + record.timestamp() + " "
                + hex(record.key()) + " " + hex(record.value()) + headers);
        }
    }

    /** Bytes in hex after an "x", so that no word is empty. */
    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "-";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return "x" + HEX.formatHex(bytes);
    }

    /** The clock of the history that is played, in which no time passes by itself. */
    private static final class FixedTime implements Time {
        volatile long now;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return System.nanoTime();
        }

        @Override
        public void sleep(long ms) { }

        @Override
        public void waitObject(Object object, java.util.function.Supplier<Boolean> condition,
                               long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
