"""State derived from the batches of a log: producers (ProducerStateManager) and leader epochs."""
