"""The segments of a log: their files and indexes, and the code that reads and scans them."""
