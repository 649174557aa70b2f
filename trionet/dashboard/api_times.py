"""From counts since the start to what an API did of late: its phases and its latencies."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..metrics.request_times import PHASES
from .history import History, Rate
from .rows import ApiRow

#: Phases and latencies are of the last seconds, so many.
WINDOW_SECONDS: Final = 10.0
#: What took no time that can be measured took this long.
SHORTEST_MS: Final = 0.001
#: Of how many looks it is remembered how their latencies spread: as many as a wide screen shows.
SPREADS_MAX: Final = 240


@attrs.frozen
class _Counts:
    """What an API has done since the start, at one moment."""

    at: float
    requests: int
    bytes: int
    sums_ms: tuple[float, ...]
    buckets: Mapping[float, int]


class ApiTimes:
    """One API: keeps the counts of the last seconds, and compares.

    Args:
        name: Kafka's name of the API.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._kept: deque[_Counts] = deque()
        self._rate, self._error_rate = Rate(), Rate()
        self._history = History()
        self._spreads: deque[Mapping[int, int] | None] = deque(maxlen=SPREADS_MAX)

    def update(self, at: float, told: Mapping[str, Any]) -> ApiRow:
        """The row of now.

        Args:
            at: the time of the broker's clock, in seconds.
            told: what ``apis`` of ``/snapshot`` has of it.
        """
        now = _Counts(
            at,
            told["requests"],
            told["bytes"],
            tuple(told["phases_ms"][phase] for phase in PHASES),
            dict(told["total_ms"]),
        )
        kept = self._kept
        if kept and (at < kept[-1].at or now.requests < kept[-1].requests):
            kept.clear()  # the broker was started anew
        if kept:
            self._spreads.append(spread(kept[-1].buckets, now.buckets))
        kept.append(now)
        while len(kept) > 2 and kept[1].at <= at - WINDOW_SECONDS:
            kept.popleft()
        rate = self._rate.update(at, now.requests)
        if rate is not None:
            self._history.add(at, rate)
        return self._row(kept[0], now, rate, told.get("errors", 0))

    def mark_unknown(self, row: ApiRow) -> ApiRow:
        """The row when the broker does not tell: only what it had counted."""
        self._history.mark_unknown()
        self._spreads.append(None)
        return ApiRow(
            row.name,
            row.requests,
            None,
            row.errors,
            None,
            (),
            None,
            None,
            None,
            (),
            None,
            self._history,
            self._spreads,
        )

    def _row(self, before: _Counts, now: _Counts, rate: float | None, errors: int) -> ApiRow:
        finished = now.requests - before.requests
        phases: tuple[float, ...] = ()
        buckets: list[tuple[float, int]] = []
        if finished:
            grown = [b - a for a, b in zip(before.sums_ms, now.sums_ms, strict=True)]
            phases = tuple(each / finished for each in grown)
            counts = (
                (upper, count - before.buckets.get(upper, 0))
                for upper, count in now.buckets.items()
            )
            buckets = sorted(each for each in counts if each[1] > 0)
        return ApiRow(
            self.name,
            now.requests,
            rate,
            errors,
            self._error_rate.update(now.at, errors),
            phases,
            quantile(buckets, 0.5),
            quantile(buckets, 0.99),
            buckets[-1][0] if buckets else None,
            tuple(buckets),
            (now.bytes - before.bytes) / finished if finished else None,
            self._history,
            self._spreads,
        )


def spread(before: Mapping[float, int], now: Mapping[float, int]) -> Mapping[int, int]:
    """How many requests took how long, from one look to the next.

    Args:
        before: counts by the longest time of a bucket in ms.
        now: the same, later.

    Returns:
        The counts by the exponent of two that is the longest time in ms.
    """
    found: dict[int, int] = {}
    if now != before:
        for upper, count in now.items():
            grown = count - before.get(upper, 0)
            if grown > 0:
                exponent = math.ceil(math.log2(max(upper, SHORTEST_MS)))
                found[exponent] = found.get(exponent, 0) + grown
    return found


def quantile(buckets: list[tuple[float, int]], fraction: float) -> float | None:
    """What so many of the counted values do not exceed: the upper bound of a bucket.

    Args:
        buckets: upper bound and count, ascending; empty gives None.
        fraction: 0 to 1.
    """
    wanted = max(1, fraction * sum(count for _, count in buckets))
    seen = 0
    for upper, count in buckets:
        seen += count
        if seen >= wanted:
            return upper
    return None
