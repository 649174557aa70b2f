"""Limits on connections: their number and their creation rate."""
