"""What a Python process of Spark keeps open: a thread that runs a trio loop, and its clients."""
