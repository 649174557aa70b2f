"""One segment: its log file, its indexes, reading and scanning it."""
