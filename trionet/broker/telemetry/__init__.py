"""The telemetry of a broker: metrics, snapshot sections and the request log."""
