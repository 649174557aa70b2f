"""Rates, averages and quantiles of late, made of numbers that only grow.

Components count; nobody tells a rate that something happened. A rate is shown the count whenever a
snapshot is taken, every few seconds at least, and works out the rest. So whoever counts pays one
addition, and ``now`` (seconds of the loop's clock) is a parameter everywhere.

Two kinds, as in Kafka: the moving averages of 1, 5 and 15 minutes of its Yammer meters
(:class:`MovingRate`), and the windows of its own library, two of 30 seconds by default
(:class:`Window`; Kafka: Rate, SampledStat).
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from operator import sub
from typing import Generic, TypeVar

# metrics.num.samples and metrics.sample.window.ms
SAMPLES = 2
SAMPLE_SECONDS = 30.0
# The periods of a meter's averages, in seconds.
MINUTES = (60.0, 300.0, 900.0)


class MovingRate:
    """Events a second, the recent ones counting most (Kafka: Yammer's Meter).

    Args:
        count: events so far.
        now: the time of that count.

    Attributes:
        rates: the averages over :data:`MINUTES`, in events a second.
    """

    __slots__ = ("_count", "_updated_at", "rates")

    def __init__(self, count: float, now: float) -> None:
        self._count = count
        self._updated_at = now
        self.rates: tuple[float, ...] = ()

    def update(self, count: float, now: float) -> None:
        """Take note of the events so far; within a second of the last time it is not looked at."""
        elapsed = now - self._updated_at
        if elapsed < 1.0:
            return
        rate = (count - self._count) / elapsed
        # Until there is an average, the first rate is it.
        rates = self.rates or (rate,) * len(MINUTES)
        self.rates = tuple(
            old + (rate - old) * -math.expm1(-elapsed / minutes)
            for old, minutes in zip(rates, MINUTES, strict=True)
        )
        self._count = count
        self._updated_at = now


class Window:
    """What became more in the last windows; for rates, averages, ratios and histograms.

    Args:
        values: numbers that only grow, as they were at ``now``.
        now: when the first window began.
        samples: how many windows count, the one in progress included.
        seconds: the length of one.
    """

    __slots__ = ("_samples", "_seconds", "_starts")

    def __init__(
        self,
        values: Sequence[float],
        now: float,
        samples: int = SAMPLES,
        seconds: float = SAMPLE_SECONDS,
    ) -> None:
        self._samples = samples
        self._seconds = seconds
        self._starts = deque([(now, values)])

    def since(self, values: Sequence[float], now: float) -> tuple[float, list[float]]:
        """How long ago the oldest window began, and by how much each number has grown since.

        Args:
            values: the numbers as they are; kept, so not to be changed by the caller.
            now: seconds.
        """
        starts = self._starts
        if now - starts[-1][0] >= self._seconds:
            starts.append((now, values))
            if len(starts) > self._samples:
                starts.popleft()
        began, before = starts[0]
        return now - began, list(map(sub, values, before))

    def rate_seconds(self, elapsed: float) -> float:
        """What a rate over ``elapsed`` seconds is divided by: whole windows, but for the last.

        (Kafka: Rate.windowSize.) So the first event is no infinite rate.
        """
        return max(elapsed, (self._samples - 1) * self._seconds, 1e-3)


T = TypeVar("T")


class ByKey(Generic[T]):
    """One rate or window for each key that was there at the last look.

    A key that was not there before has counted from 0 since that look; at the first look nothing is
    known of before, and what was counted then is left out.

    Args:
        make: makes a rate or window of ``(values, now)``.
        began_at: when everything was 0, which counts as a look; None if nobody knows.
    """

    __slots__ = ("_kept", "_last_look", "_look", "_made", "_make")

    def __init__(
        self, make: Callable[[Sequence[float], float], T], began_at: float | None = None
    ) -> None:
        self._make = make
        self._made: dict[Hashable, T] = {}
        self._kept: dict[Hashable, T] = {}
        self._look = began_at
        self._last_look: float | None = None

    def begin(self, now: float) -> None:
        """Begin a look; what the last one did not ask for is forgotten."""
        self._kept, self._made = self._made, {}
        self._last_look, self._look = self._look, now

    def keep(self, key: Hashable) -> bool:
        """Ask for a key whose numbers have not changed; whether there is one."""
        made = self._kept.get(key)
        if made is None:
            return False
        self._made[key] = made
        return True

    def get(
        self,
        key: Hashable,
        values: Sequence[float],
        now: float,
        first: Sequence[float] | None = None,
    ) -> T:
        """The rate or window of a key whose numbers are ``values`` now.

        Args:
            key: any.
            values: kept, so not to be changed by the caller.
            now: seconds.
            first: what a new key counts from, where that is not 0.
        """
        made = self._kept.get(key)
        if made is None:
            before = self._last_look
            first = [0.0] * len(values) if first is None else first
            made = self._make(values, now) if before is None else self._make(first, before)
        self._made[key] = made
        return made


class RollingMaximum:
    """The largest number of late; who has a number does ``if n > m.current: m.current = n``.

    Attributes:
        current: the largest one of the window in progress; 0 without any.
    """

    __slots__ = ("_began", "_previous", "current")

    def __init__(self) -> None:
        self._began = -math.inf
        self._previous = 0
        self.current: int = 0

    def roll(self, now: float, seconds: float = SAMPLE_SECONDS) -> int:
        """The largest number of the last two windows; begins a new one when it is time."""
        largest = max(self._previous, self.current)
        if now - self._began >= seconds:
            self._began = now
            self._previous, self.current = self.current, 0
        return largest
