"""Counts the records, bytes and latencies of a run; performs no I/O."""

from __future__ import annotations

from typing import Final

import attrs

from trionet.metrics._rates import Histogram

MICROSECONDS: Final = 1_000_000


@attrs.define
class Window:
    """The counts since the last progress line."""

    records: int = 0
    bytes: int = 0
    total_us: int = 0
    max_us: int = 0


@attrs.define
class Tally:
    """The cumulative counts of a run.

    Attributes:
        began: the start time, in seconds.
        last: the time at which something was last counted, in seconds.
        records: the number of completed records.
        bytes: the total size of the keys and values of completed records.
        failed: the number of failed records.
        failure: the reason for the first failure.
        total_us: the sum of all latencies in microseconds.
        histogram: the latencies in microseconds.
        window: the counts since the last :meth:`take_window`.
    """

    began: float
    last: float = attrs.field(init=False)
    records: int = 0
    bytes: int = 0
    failed: int = 0
    failure: str = ""
    total_us: int = 0
    histogram: Histogram = attrs.field(factory=Histogram)
    window: Window = attrs.field(factory=Window)

    def __attrs_post_init__(self) -> None:
        self.last = self.began

    def count(self, records: int, bytes: int, now: float) -> None:
        """Count completed records."""
        self.records += records
        self.bytes += bytes
        self.window.records += records
        self.window.bytes += bytes
        self.last = now

    def took(self, seconds: float, records: int = 1) -> None:
        """Record the latency of completed records."""
        value = max(0, round(seconds * MICROSECONDS))
        self.histogram.add(value, records)
        self.total_us += value * records
        self.window.total_us += value * records
        self.window.max_us = max(self.window.max_us, value)

    def fail(self, records: int, why: str, now: float) -> None:
        """Count failed records."""
        self.failed += records
        self.failure = self.failure or why
        self.last = now

    def take_window(self) -> Window:
        """Return the counts since the previous call, and start a new window."""
        window, self.window = self.window, Window()
        return window

    @property
    def seconds(self) -> float:
        """The time from ``began`` to ``last``, in seconds."""
        return self.last - self.began

    @property
    def mean_us(self) -> float:
        """The mean latency in microseconds, or 0 if none was recorded."""
        return self.total_us / self.histogram.count if self.histogram.count else 0.0
