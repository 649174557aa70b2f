"""Batches of producers before they are appended (LogValidator): checks, recompression, offsets."""
