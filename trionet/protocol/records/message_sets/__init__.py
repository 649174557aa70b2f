"""Message sets (formats 0 and 1): reading them, and conversion from and to batches."""
