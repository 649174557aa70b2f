"""Offset look-ups, and the reset and validation of positions."""
