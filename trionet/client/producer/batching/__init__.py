"""RecordAccumulator: gathers records into batches by partition, within buffer.memory."""
