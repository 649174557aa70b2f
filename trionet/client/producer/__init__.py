"""The producer: records into batches, batches to the leaders of their partitions."""
