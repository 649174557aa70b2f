"""Formats a report as text tables, for a terminal, and as JSON."""
