import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ResourceMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ScopeMetrics;

/**
 * Writes what clients push into a file, a line for each number: whose it is, whether it is of the
 * last push, its name, kind and value.
 */
public class TelemetryPlugin implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private Path file;

    @Override
    public void configure(Map<String, ?> settings) {
        file = Path.of((String) settings.get("telemetry.file"));
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        StringBuilder lines = new StringBuilder();
        String head = payload.clientInstanceId() + "\t" + payload.isTerminating();
        try {
            MetricsData data = MetricsData.parseFrom(payload.data());
            for (ResourceMetrics resource : data.getResourceMetricsList())
                for (ScopeMetrics scope : resource.getScopeMetricsList())
                    for (Metric metric : scope.getMetricsList())
                        lines.append(head).append("\t").append(line(metric)).append("\n");
            Files.writeString(file, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String line(Metric metric) {
        boolean isSum = metric.hasSum();
        NumberDataPoint point =
            isSum ? metric.getSum().getDataPoints(0) : metric.getGauge().getDataPoints(0);
        String kind = isSum ? metric.getSum().getAggregationTemporality().name() : "GAUGE";
        return metric.getName() + "\t" + kind + "\t" + point.getAsDouble();
    }

    @Override
    public void init(List<KafkaMetric> metrics) { }

    @Override
    public void metricChange(KafkaMetric metric) { }

    @Override
    public void metricRemoval(KafkaMetric metric) { }

    @Override
    public void close() { }
}
