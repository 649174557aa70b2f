"""TransactionManager: manages producer ids, epochs and sequence numbers."""
