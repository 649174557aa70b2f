"""Parsing of command-line arguments: numbers, times, partitions, names, changes of settings."""
