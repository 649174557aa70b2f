"""The time of day; apart, because it is compiled: a producer asks for it with each record."""

# Compiled by mypyc.

from __future__ import annotations

import time


def now_ms() -> int:
    """In milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
