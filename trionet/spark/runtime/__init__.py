"""What a Python process of Spark keeps open: the thread with the trio loop, and its clients."""
