"""The telemetry pipeline: a broker's request log to rates, percentiles and anomalies, on Spark."""
