"""The transactions of a producer, and the sequence numbers that transactions and idempotence need."""
