"""Batching of records per partition, within ``buffer.memory``."""
