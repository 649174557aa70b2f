"""Batching records per partition, within the limit of ``buffer.memory``."""
