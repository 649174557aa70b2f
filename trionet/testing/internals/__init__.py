"""Accesses the internals of a running broker: its loop, groups, records and long operations."""
