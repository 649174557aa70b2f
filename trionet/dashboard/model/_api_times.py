"""Recent phases, latencies and rates of an API, computed from cumulative counters."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ...metrics._request_times import PHASES
from ._history import History, Rate
from ._rows import ApiRow

#: The window of phases and latencies, in seconds.
WINDOW_SECONDS: Final = 10.0
#: The shortest latency that can be measured.
SHORTEST_MS: Final = 0.001
#: The maximum number of latency distributions kept, one per read and screen column.
SPREADS_MAX: Final = 240


@attrs.frozen
class _Counts:
    """The cumulative counters of an API at a point in time."""

    at: float
    requests: int
    bytes: int
    sums_ms: tuple[float, ...]
    buckets: Mapping[float, int]


class ApiTimes:
    """The recent times of an API, computed from the differences between counters.

    Args:
        name: the name of the API in Kafka.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._kept: deque[_Counts] = deque()
        self._rate, self._error_rate = Rate(), Rate()
        self._history = History()
        self._spreads: deque[Mapping[int, int] | None] = deque(maxlen=SPREADS_MAX)

    def update(self, at: float, values: Mapping[str, Any]) -> ApiRow:
        """Add the current counters, and return the current row.

        Args:
            at: the time in seconds on the broker's clock.
            values: the API's entry under ``apis`` in ``/snapshot``.
        """
        now = _Counts(
            at,
            values["requests"],
            values["bytes"],
            tuple(values["phases_ms"][phase] for phase in PHASES),
            dict(values["total_ms"]),
        )
        kept = self._kept
        if kept and (at < kept[-1].at or now.requests < kept[-1].requests):
            kept.clear()  # the broker was restarted
        if kept:
            self._spreads.append(spread(kept[-1].buckets, now.buckets))
        kept.append(now)
        while len(kept) > 2 and kept[1].at <= at - WINDOW_SECONDS:
            kept.popleft()
        rate = self._rate.update(at, now.requests)
        if rate is not None:
            self._history.add(at, rate)
        return self._row(kept[0], now, rate, values.get("errors", 0))

    def mark_unknown(self, row: ApiRow) -> ApiRow:
        """Return the row to show while the broker cannot be read, with only the counters known."""
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
    """Return the latency distribution of the requests between two reads.

    Args:
        before: the earlier counts, keyed by the bucket's upper bound in ms.
        now: the later counts, keyed by the bucket's upper bound in ms.

    Returns:
        The counts, keyed by the binary logarithm of the bucket's upper bound in ms.
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
    """Return the upper bound of the bucket that contains a quantile.

    Args:
        buckets: the upper bounds and the counts, in ascending order.
        fraction: the quantile as a fraction, 0 to 1.

    Returns:
        The upper bound; None if there are no buckets.
    """
    target = max(1, fraction * sum(count for _, count in buckets))
    seen = 0
    for upper, count in buckets:
        seen += count
        if seen >= target:
            return upper
    return None
