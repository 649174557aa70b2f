"""Metrics and statistics of clients, and their telemetry (KIP-714)."""
