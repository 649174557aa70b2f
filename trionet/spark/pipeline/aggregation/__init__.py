"""Aggregates log records into partial sums that can be merged."""
