"""The job itself: its settings, Spark session, topics and micro-batches."""
