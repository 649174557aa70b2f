"""Formats text, numbers, charts and tables as lines of an exact width; performs no I/O."""
