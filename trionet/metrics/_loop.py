"""The load of the trio loop, and its lag: how long a ready task waits for its turn.

One pass of the loop runs every ready task; a socket that becomes ready in the meantime waits until
the pass ends. So the duration of a pass is the lag, and the time between passes is idle time.
"""

from __future__ import annotations

from typing import Self

import attrs
import trio

from .._util._monotonic import perf_counter_ns
from ._rates import Histogram

# Passes below 1 ms, nearly all of them, are counted in steps of 8 µs; longer ones in a histogram.
SHORT_PASS_SHIFT = 13
SHORT_PASS_BUCKETS = 128


@attrs.frozen
class LoopStatistics:
    """Statistics of the loop since the monitor started.

    Attributes:
        idle_ratio: the fraction of time, 0 to 1, that the loop waited for I/O or timers.
        passes: the number of passes.
        lag_p50_us: the median duration of a pass, in microseconds.
        lag_p99_us: the 99th percentile of the duration of a pass, in microseconds.
        lag_max_us: the duration of the longest pass, in microseconds.
        idle_seconds: the total idle time of the loop.
        seconds: the time since the monitor started.
    """

    idle_ratio: float
    passes: int
    lag_p50_us: int
    lag_p99_us: int
    lag_max_us: int
    idle_seconds: float
    seconds: float


class LoopMonitor(trio.abc.Instrument):
    """A context manager that measures the current trio loop while its block runs."""

    def __init__(self) -> None:
        self._short_passes = [0] * SHORT_PASS_BUCKETS
        self._long_passes = Histogram()
        self._began = self._pass_began = perf_counter_ns()
        self._wait_began = 0
        self._idle_ns = 0

    def __enter__(self) -> Self:
        trio.lowlevel.add_instrument(self)
        return self

    def __exit__(self, *_: object) -> None:
        trio.lowlevel.remove_instrument(self)

    # These two run in every pass, so they do as little as possible: half a microsecond together.

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio's signature
        now = self._wait_began = perf_counter_ns()
        bucket = (now - self._pass_began) >> SHORT_PASS_SHIFT
        if bucket < SHORT_PASS_BUCKETS:
            self._short_passes[bucket] += 1
        else:
            self._long_passes.record((now - self._pass_began) // 1000)

    def after_io_wait(self, timeout: float) -> None:
        now = self._pass_began = perf_counter_ns()
        if timeout:
            self._idle_ns += now - self._wait_began

    def statistics(self) -> LoopStatistics:
        elapsed_ns = max(1, perf_counter_ns() - self._began)
        return LoopStatistics(
            idle_ratio=min(1.0, self._idle_ns / elapsed_ns),
            passes=sum(self._short_passes) + self._long_passes.count,
            lag_p50_us=self._quantile(0.5),
            lag_p99_us=self._quantile(0.99),
            lag_max_us=self._quantile(1.0),
            idle_seconds=self._idle_ns / 1e9,
            seconds=elapsed_ns / 1e9,
        )

    def clear(self) -> None:
        """Restart all measurements, so that quantiles cover only the time after this call."""
        self._short_passes = [0] * SHORT_PASS_BUCKETS
        self._long_passes.clear()
        self._began = perf_counter_ns()
        self._idle_ns = 0

    def _quantile(self, fraction: float) -> int:
        """Return a quantile in microseconds, rounded up to the upper bound of its bucket."""
        short, long = sum(self._short_passes), self._long_passes.count
        wanted = fraction * (short + long)
        if wanted > short:
            return self._long_passes.quantile((wanted - short) / long)
        seen = 0
        for bucket, count in enumerate(self._short_passes):
            seen += count
            if count and seen >= wanted:
                return ((bucket + 1) << SHORT_PASS_SHIFT) // 1000
        return 0
