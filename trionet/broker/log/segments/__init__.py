"""The segments of a log: their files and indexes, and how they are read and scanned."""
