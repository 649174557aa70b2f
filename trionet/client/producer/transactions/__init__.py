"""The producer ids, epochs and sequence numbers of an idempotent producer."""
