"""What a run has counted: records, bytes, and how long each took. Pure."""

from __future__ import annotations

from typing import Final

import attrs

from trionet.metrics._histogram import Histogram

MICROSECONDS: Final = 1_000_000


@attrs.define
class Window:
    """What was counted since the last line about the progress."""

    records: int = 0
    bytes: int = 0
    total_us: int = 0
    max_us: int = 0


@attrs.define
class Tally:
    """What a run has counted so far.

    Attributes:
        began: when it began, in seconds.
        last: when something was counted last.
        records: how many are done.
        bytes: of their keys and values.
        failed: how many will never be done.
        failure: why the first of them will not.
        total_us: of all latencies.
        histogram: of latencies in microseconds.
        window: since :meth:`take_window`.
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
        """Records are done."""
        self.records += records
        self.bytes += bytes
        self.window.records += records
        self.window.bytes += bytes
        self.last = now

    def took(self, seconds: float, records: int = 1) -> None:
        """So many records took so long."""
        value = max(0, round(seconds * MICROSECONDS))
        self.histogram.add(value, records)
        self.total_us += value * records
        self.window.total_us += value * records
        self.window.max_us = max(self.window.max_us, value)

    def fail(self, records: int, why: str, now: float) -> None:
        """Records will never be done."""
        self.failed += records
        self.failure = self.failure or why
        self.last = now

    def take_window(self) -> Window:
        """What was counted since the last call."""
        window, self.window = self.window, Window()
        return window

    @property
    def seconds(self) -> float:
        """From the begin to what was counted last."""
        return self.last - self.began

    @property
    def mean_us(self) -> float:
        """The mean of all latencies; 0 without any."""
        return self.total_us / self.histogram.count if self.histogram.count else 0.0
