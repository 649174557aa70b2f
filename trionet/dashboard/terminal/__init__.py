"""The terminal: the tty, key decoding, and encoding of lines as escape sequences."""
