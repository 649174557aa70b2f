"""Values of command-line arguments: numbers, times, partitions, names and patterns, changes of settings."""
