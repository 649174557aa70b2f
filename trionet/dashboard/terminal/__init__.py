"""The terminal: the tty, decoding of keys, and encoding of lines as escape sequences."""
