"""Log compaction: keep at least the last record of each key (Kafka: LogCleaner)."""
