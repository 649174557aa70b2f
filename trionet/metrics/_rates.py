"""Recent rates, averages and quantiles, computed from numbers that only increase.

Components only count events, which costs one addition each. A rate does not see the events: it is
given the current count when a snapshot is taken, at least every few seconds, and computes the rest.
Nothing here reads a clock: every ``now`` is a parameter, in seconds on the loop's clock.

As in Kafka, there are two kinds of rates: moving averages over 1, 5 and 15 minutes, as in Yammer's
meters (:class:`MovingRate`), and windows, by default two windows of 30 seconds, as in Kafka's own
metrics library (:class:`Window`; Kafka: Rate, SampledStat).

Durations are counted in a :class:`Histogram` with eight buckets per power of two: recording a value
takes one index computation and one addition; a quantile is accurate to within an eighth.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import sub
from typing import Generic, TypeVar

_SPLIT_BITS = 3
_SPLIT = 1 << _SPLIT_BITS
# Enough for any number below 2 to the 64.
BUCKETS = 64 * _SPLIT


class Histogram:
    """A histogram of non-negative integers, such as microseconds."""

    __slots__ = ("_buckets", "count", "maximum")

    def __init__(self) -> None:
        self._buckets = [0] * BUCKETS
        self.count = 0
        self.maximum = 0

    def record(self, value: int) -> None:
        self._buckets[bucket_of(value)] += 1
        self.count += 1
        self.maximum = max(self.maximum, value)

    def add(self, value: int, count: int) -> None:
        """Record a value ``count`` times."""
        if count:
            self._buckets[bucket_of(value)] += count
            self.count += count
            self.maximum = max(self.maximum, value)

    def counts(self) -> list[int]:
        """Return the count of each bucket; see :func:`upper_of` for the bounds of a bucket."""
        return list(self._buckets)

    def quantile(self, fraction: float) -> int:
        """Return a quantile, accurate to within an eighth; 0 if there are no values.

        Args:
            fraction: the fraction of all values that do not exceed the quantile, from 0 to 1.
        """
        [upper] = quantiles_of(self._buckets, [fraction])
        return min(upper, self.maximum)

    def clear(self) -> None:
        self._buckets = [0] * len(self._buckets)
        self.count = 0
        self.maximum = 0


def bucket_of(value: int) -> int:
    """Return the index of a value's bucket; every value up to 15 has a bucket of its own."""
    shift = value.bit_length() - _SPLIT_BITS - 1
    if shift <= 0:
        return value
    return (shift << _SPLIT_BITS) + (value >> shift)


def upper_of(bucket: int) -> int:
    """Return the upper bound of a bucket, which belongs to it."""
    shift = (bucket >> _SPLIT_BITS) - 1
    if shift <= 0:
        return bucket
    return (((bucket & (_SPLIT - 1)) + _SPLIT + 1) << shift) - 1


def quantiles_of(counts: Sequence[int], fractions: Iterable[float]) -> Iterator[int]:
    """Yield the quantile for each fraction: the value that this fraction of values do not exceed.

    Quantiles are accurate to within an eighth.

    Args:
        counts: the count of each bucket; if all are 0, so are all quantiles.
        fractions: numbers from 0 to 1.
    """
    sums = list(accumulate(counts))
    total = sums[-1]
    for fraction in fractions:
        yield upper_of(bisect_left(sums, max(1, fraction * total))) if total else 0


# metrics.num.samples and metrics.sample.window.ms
SAMPLES = 2
SAMPLE_SECONDS = 30.0
# The periods of a meter's averages, in seconds.
MINUTES = (60.0, 300.0, 900.0)


class MovingRate:
    """The rate of events per second, weighted towards recent events (Kafka: Yammer's Meter).

    Args:
        count: the current number of events.
        now: the time at which the events were counted.

    Attributes:
        rates: the averages over :data:`MINUTES`, in events per second; empty until the first
            update.
    """

    __slots__ = ("_count", "_updated_at", "rates")

    def __init__(self, count: float, now: float) -> None:
        self._count = count
        self._updated_at = now
        self.rates: tuple[float, ...] = ()

    def update(self, count: float, now: float) -> None:
        """Update the averages with the current number of events; a no-op within one second."""
        elapsed = now - self._updated_at
        if elapsed < 1.0:
            return
        rate = (count - self._count) / elapsed
        # The averages start with the first rate, not with 0.
        rates = self.rates or (rate,) * len(MINUTES)
        self.rates = tuple(
            old + (rate - old) * -math.expm1(-elapsed / minutes)
            for old, minutes in zip(rates, MINUTES, strict=True)
        )
        self._count = count
        self._updated_at = now


class Window:
    """The increase of numbers over the last windows, for rates, averages, ratios and histograms.

    Args:
        values: the values at ``now`` of numbers that only increase.
        now: the start of the first window.
        samples: the number of windows, including the current one.
        seconds: the length of a window, in seconds.
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
        """Return the time since the oldest window began, and each number's increase since then.

        Args:
            values: the current numbers; the object is kept, so the caller must not modify it.
            now: the current time, in seconds on the loop's clock.
        """
        starts = self._starts
        if now - starts[-1][0] >= self._seconds:
            starts.append((now, values))
            if len(starts) > self._samples:
                starts.popleft()
        began, before = starts[0]
        return now - began, list(map(sub, values, before))

    def rate_seconds(self, elapsed: float) -> float:
        """Return the divisor for a rate over ``elapsed`` seconds: at least all windows but one.

        (Kafka: Rate.windowSize.) The minimum prevents an excessive rate after the first event.
        """
        return max(elapsed, (self._samples - 1) * self._seconds, 1e-3)


T = TypeVar("T")


class ByKey(Generic[T]):
    """One rate or window per key of the last sampling round.

    The numbers of a new key are assumed to have been 0 in the previous round. In the first round,
    nothing is known about the past, so earlier counts are ignored.

    Args:
        make: creates a rate or window from ``(values, now)``.
        began_at: the time when all numbers were 0, which counts as a round; None if unknown.
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
        """Start a new sampling round, dropping keys that were not used in the previous round."""
        self._kept, self._made = self._made, {}
        self._last_look, self._look = self._look, now

    def keep(self, key: Hashable) -> bool:
        """Keep a key whose numbers have not changed. Returns whether the key exists."""
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
        """Return the rate or window of a key, creating it if needed.

        Args:
            key: identifies the rate or window.
            values: the current numbers; the object is kept, so the caller must not modify it.
            now: the current time, in seconds on the loop's clock.
            first: the initial numbers of a new key, if not 0.
        """
        made = self._kept.get(key)
        if made is None:
            before = self._last_look
            first = [0.0] * len(values) if first is None else first
            made = self._make(values, now) if before is None else self._make(first, before)
        self._made[key] = made
        return made


class RollingMaximum:
    """A recent maximum; callers record numbers with ``if n > m.current: m.current = n``.

    Attributes:
        current: the maximum in the current window; 0 if no number has been recorded.
    """

    __slots__ = ("_began", "_previous", "current")

    def __init__(self) -> None:
        self._began = -math.inf
        self._previous = 0
        self.current: int = 0

    def roll(self, now: float, seconds: float = SAMPLE_SECONDS) -> int:
        """Return the maximum over the last two windows, then start a new window if one is due."""
        largest = max(self._previous, self.current)
        if now - self._began >= seconds:
            self._began = now
            self._previous, self.current = self.current, 0
        return largest
