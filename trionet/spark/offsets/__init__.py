"""Partition offsets: their JSON form, limits and ranges, and the plan of a query. Pure."""
