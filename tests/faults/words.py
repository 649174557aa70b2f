"""The first bytes of requests, and what the disturbed server does with them."""

from __future__ import annotations

# Answered with itself.
ECHO = b"e"
# Answered with many bytes.
BIG = b"b"
BIG_BYTES = 1024 * 1024
# Answered after a while, by no handler.
LATER = b"l"
LATER_SECONDS = 0.05
# Held by its handler, which takes nothing else meanwhile, until the server is told to answer.
HOLD = b"h"
# Kept by nobody, until the server is told to answer.
KEEP = b"k"
