"""Renders a report as a single HTML page with charts."""
