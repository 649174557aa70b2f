"""Metrics, statistics and telemetry (KIP-714) of clients."""
