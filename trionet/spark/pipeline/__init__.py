"""The telemetry pipeline: from a broker's request log to rates, percentiles and anomalies."""
