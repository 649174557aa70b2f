"""Manages a data directory (Kafka: LogManager): its identity, partitions and checkpoints."""
