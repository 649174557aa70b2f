"""Opens logs after clean and unclean shutdowns (Kafka: LogLoader), and detects missing records."""
