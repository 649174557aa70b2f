"""The clocks of a broker in a thread, which tests do not stop when they stop their program's clock.

The problem: tools such as freezegun and time-machine stop or move the clock of a whole process, so
that a broker in it would reject the timestamps of clients written in C, which they do not affect,
and its timers would stand still. The clock of a broker in another process would go on.

The choice: the wall-clock time comes from the C library, since time-machine replaces the functions
of the :mod:`time` module in C. Only a broker for tests pays for that: the call takes four times as
long.
"""

from __future__ import annotations

import ctypes
import sys
import time

import trio

from .._util._monotonic import perf_counter
from ..net._network import SystemNetwork

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

# PyDLL, since calls through it keep the GIL. A thread that computes would take it for 5 ms.
if sys.platform == "win32":
    # Counts steps of 100 ns since 1601.
    _EPOCH_MS = 11_644_473_600_000
    _get_time = ctypes.PyDLL("kernel32").GetSystemTimePreciseAsFileTime

    def now_ms() -> int:
        """Return the wall-clock time, in milliseconds since the epoch."""
        now = ctypes.c_uint64()
        _get_time(ctypes.byref(now))
        return now.value // 10_000 - _EPOCH_MS

else:
    _Timespec = ctypes.c_long * 2  # seconds and nanoseconds
    _get_time = ctypes.PyDLL(None).clock_gettime

    def now_ms() -> int:
        """Return the wall-clock time, in milliseconds since the epoch."""
        now = _Timespec()
        _get_time(time.CLOCK_REALTIME, now)
        return now[0] * 1000 + now[1] // 1_000_000


class SystemClock(trio.abc.Clock):
    """The monotonic clock of the system, as a clock of trio."""

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return perf_counter()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - perf_counter()


class SystemClockNetwork(SystemNetwork):
    """The network of the operating system, with its wall clock."""

    now_ms: staticmethod[[], int] = staticmethod(now_ms)
