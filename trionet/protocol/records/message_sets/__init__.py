"""Message sets (formats 0 and 1), and their conversion to and from batches."""
