"""A report as a single HTML page with charts."""
