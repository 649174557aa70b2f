"""The first bytes of requests, and what the disturbed server does with them."""

from __future__ import annotations

# Echoed.
ECHO = b"e"
# Gets a response of many bytes.
BIG = b"b"
BIG_BYTES = 1024 * 1024
# Gets a response after a while, by no handler.
LATER = b"l"
LATER_SECONDS = 0.05
# Held by its handler, which takes nothing else meanwhile, until the server is asked to respond.
HOLD = b"h"
# Kept by nobody, until the server is asked to respond.
KEEP = b"k"
