"""Manages a data folder (LogManager): its identity, partitions and checkpoints."""
