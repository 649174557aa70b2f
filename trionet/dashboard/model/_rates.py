"""Rates, latencies and histories, computed from a broker's counters in consecutive snapshots."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...metrics._request_times import PHASES
from ._figures import History, Rate
from ._row_factory import integer, row_factory, text
from ._snapshot import BrokerSnapshot

if TYPE_CHECKING:
    from ._rows import ApiRow, CloseReasonRow, ProcessorRow

#: The names of a processor's rates, each with the name of the counter.
_PROCESSOR_RATES = (
    ("request", "requests"),
    ("response", "responses"),
    ("bytes_received", "bytes_received"),
    ("bytes_sent", "bytes_sent"),
)


class BrokerRates:
    """The values that depend on two consecutive snapshots of one broker.

    For each snapshot, call :meth:`begin` first, and then each other method at most once.
    """

    def __init__(self) -> None:
        self._apis: dict[str, ApiTimes] = {}
        self._processors: dict[int, History] = {}
        self._rates: dict[object, Rate] = {}
        # When the broker was read last, and its uptime then.
        self._seen: tuple[float | None, float | None] = (None, None)

    def begin(self, at: float, uptime: float | None) -> None:
        """Drop the kept counters if the broker was restarted.

        A restart cannot be detected from the counters, because the new counters may already exceed
        the old ones. A restart also changes the clock, which starts at an arbitrary time in each
        trio loop.

        Args:
            at: the time of the new snapshot in seconds on the broker's clock.
            uptime: the uptime of the broker in seconds; None if it is not reported.
        """
        before_at, before_uptime = self._seen
        self._seen = at, uptime
        if before_at is None or uptime is None or before_uptime is None:
            return
        if at < before_at or uptime < before_uptime or at - uptime > before_at:
            for kept in (self._rates, self._apis, self._processors):
                kept.clear()

    def rate(self, of: object, at: float, count: float) -> float | None:
        """Return a counter's rate per second, or None if there is no earlier count.

        Args:
            of: the key that identifies the counter.
            at: the time in seconds on the broker's clock.
            count: the value of the counter.
        """
        rate = self._rates.get(of)
        if rate is None:
            rate = self._rates[of] = Rate()
        return rate.update(at, count)

    def apis(self, snapshot: BrokerSnapshot) -> dict[str, ApiRow] | None:
        """Return request counts and times, keyed by API name; None if the broker reports none.

        Raises:
            MALFORMED: the entries are in an unknown format.
        """
        if "apis" not in snapshot.about:
            return None
        reported = {each.name: each for each in map(api_counts, snapshot.about["apis"])}
        self._apis = {name: self._apis.get(name) or ApiTimes(name) for name in reported}
        return {name: self._apis[name].update(snapshot.at, each) for name, each in reported.items()}

    def processors(self, snapshot: BrokerSnapshot) -> dict[int, ProcessorRow]:
        """Return the network processors, keyed by number.

        Raises:
            MALFORMED: the entries are in an unknown format.
        """
        from ._rows import processor_row

        at = snapshot.at
        unrated: dict[str, Any] = {f"{rate}_rate": None for rate, _ in _PROCESSOR_RATES}
        reported = [
            processor_row({**values, **unrated, "history": History()})
            for values in snapshot.about.get("processors", ())
        ]
        self._processors = {row.id: self._processors.get(row.id, row.history) for row in reported}
        rows = {}
        for row in reported:
            history = self._processors[row.id]
            rates: dict[str, Any] = {
                f"{rate}_rate": self.rate(("processor", row.id, count), at, getattr(row, count))
                for rate, count in _PROCESSOR_RATES
            }
            if rates["request_rate"] is not None:
                history.add(at, rates["request_rate"])
            rows[row.id] = attrs.evolve(row, **rates, history=history)
        return rows

    def close_reasons(self, snapshot: BrokerSnapshot) -> dict[str, CloseReasonRow]:
        """Return the number and rate of closed connections, keyed by the name of the reason.

        Raises:
            MALFORMED: the entries are in an unknown format.
        """
        from ._rows import CloseReasonRow

        counts = {
            text(reason): integer(count)
            for reason, count in snapshot.about.get("closed", {}).items()
        }
        return {
            reason: CloseReasonRow(reason, count, self.rate(("closed", reason), snapshot.at, count))
            for reason, count in counts.items()
        }

    # While the broker cannot be read, counts stay as they are, and rates are unknown.

    def unknown_apis(self, rows: Mapping[str, ApiRow]) -> dict[str, ApiRow]:
        """Return the rows without rates, and end their histories."""
        # A broker that came back with a list in another format leaves rows without a history.
        return {
            name: (self._apis.get(name) or ApiTimes(name)).mark_unknown(row)
            for name, row in rows.items()
        }

    def unknown_processors(self, rows: Mapping[int, ProcessorRow]) -> dict[int, ProcessorRow]:
        """Return the rows without rates, and end their histories."""
        for history in self._processors.values():
            history.mark_unknown()
        unknown: dict[str, Any] = {f"{rate}_rate": None for rate, _ in _PROCESSOR_RATES}
        return {id: attrs.evolve(row, **unknown) for id, row in rows.items()}


#: The window of phases and latencies, in seconds.
WINDOW_SECONDS: Final = 10.0
#: The shortest latency that can be measured.
SHORTEST_MS: Final = 0.001
#: The maximum number of latency distributions kept, one per read and screen column.
SPREADS_MAX: Final = 240


@attrs.frozen
class ApiCounts:
    """The cumulative counters of an API, as an entry under ``apis`` in ``/snapshot``.

    Attributes:
        total_ms: the number of requests by upper bound of the total time.
    """

    name: str
    requests: int
    bytes: int
    errors: int | None
    phases_ms: Mapping[str, float]
    total_ms: tuple[tuple[float, int], ...]


api_counts: Final = row_factory(ApiCounts)


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

    def update(self, at: float, counts: ApiCounts) -> ApiRow:
        """Add the current counters, and return the current row.

        Args:
            at: the time in seconds on the broker's clock.
            counts: the API's entry under ``apis`` in ``/snapshot``.

        Raises:
            MALFORMED: a phase is missing, or a time is negative.
        """
        buckets = dict(counts.total_ms)
        if min(buckets, default=0) < 0:
            raise ValueError("expected times that are not negative")
        phases = tuple(counts.phases_ms[phase] for phase in PHASES)
        now = _Counts(at, counts.requests, counts.bytes, phases, buckets)
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
        return self._row(kept[0], now, rate, counts.errors or 0)

    def mark_unknown(self, row: ApiRow) -> ApiRow:
        """Return the row to show while the broker cannot be read, with only the counters known."""
        self._history.mark_unknown()
        self._spreads.append(None)
        return attrs.evolve(
            row,
            rate=None,
            error_rate=None,
            phases_ms=(),
            p50_ms=None,
            p99_ms=None,
            max_ms=None,
            buckets=(),
            mean_bytes=None,
            history=self._history,
            spreads=self._spreads,
        )

    def _row(self, before: _Counts, now: _Counts, rate: float | None, errors: int) -> ApiRow:
        from ._rows import ApiRow

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
