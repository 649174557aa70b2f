"""The terminal itself: the tty, bytes to keys, and lines to escape sequences."""
