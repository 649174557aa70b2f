"""The data folder as a whole (LogManager): its identity, its partitions, its checkpoints."""
