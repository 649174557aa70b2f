"""Text, numbers, charts and tables as lines of an exact width. Pure."""
