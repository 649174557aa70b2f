"""TransactionManager: producer ids, epochs and sequence numbers."""
