"""Runs the job: its settings, Spark session, topics and micro-batches."""
