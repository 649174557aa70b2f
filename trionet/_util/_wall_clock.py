"""The wall-clock time, in a compiled module because producers read it for each record."""

# Compiled by mypyc.

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the wall-clock time, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
