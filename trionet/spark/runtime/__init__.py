"""The resources that a Spark Python process keeps open: a thread with a trio loop, and clients."""
