"""Parses command-line arguments: numbers, times, partitions, names and config changes."""
