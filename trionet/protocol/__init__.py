"""Kafka's wire format: bytes to values and back, without I/O, clocks or trio."""
