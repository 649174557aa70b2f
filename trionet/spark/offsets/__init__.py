"""Offsets of partitions: their JSON, limits, ranges, and the plan of what a query reads. Pure."""
