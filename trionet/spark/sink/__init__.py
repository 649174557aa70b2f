"""Writing to topics: the writers that Spark calls, and their tasks."""
