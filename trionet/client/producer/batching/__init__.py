"""RecordAccumulator: records to batches, within buffer.memory, by partition."""
