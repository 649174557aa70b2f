"""State derived from a log's batches: producers (Kafka: ProducerStateManager), leader epochs."""
