"""Partition offsets: their JSON form, limits, ranges and the planning of a query."""
