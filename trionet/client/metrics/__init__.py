"""Client metrics, statistics and telemetry (KIP-714)."""
