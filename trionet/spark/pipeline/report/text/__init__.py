"""A report as tables of text, on a terminal, and as JSON."""
