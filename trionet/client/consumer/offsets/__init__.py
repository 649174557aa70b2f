"""Offset lookups, position resets and position validation."""
