"""The figures of the overview, bounded histories of numbers, and growth rates of counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from typing import Final

import attrs

#: The maximum age of values, in seconds.
SECONDS_MAX: Final = 300.0
#: The maximum number of values, two per second.
VALUES_MAX: Final = 600


#: The interval of trends that are read at different intervals, in seconds, and for how many
#: intervals a value holds that is not read again: together longer than the longest pause between
#: two reads.
TREND_STEP_SECONDS: Final = 2.0
TREND_STEPS_HELD: Final = 6


class History:
    """The recent values of a number with the times at which they were read, in order.

    None marks a failed read, which a chart shows as a gap.

    Args:
        seconds_max: the maximum age of values relative to the newest, in seconds.
        values_max: the maximum number of values to keep.
    """

    __slots__ = ("_seconds_max", "_values")

    def __init__(self, seconds_max: float = SECONDS_MAX, values_max: int = VALUES_MAX) -> None:
        self._seconds_max = seconds_max
        self._values: deque[tuple[float, float | None]] = deque(maxlen=values_max)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[float, float | None]]:
        return iter(self._values)

    def add(self, at: float, value: float) -> None:
        """Add a value, replacing an earlier value with the same time.

        If the time is before the newest value, the clock has changed, for example because the
        broker was restarted. The older values are then dropped.
        """
        values = self._values
        if values and at <= values[-1][0]:
            if at == values[-1][0]:
                values.pop()
            else:
                values.clear()
        values.append((at, value))
        while values[0][0] < at - self._seconds_max:
            values.popleft()

    def mark_unknown(self) -> None:
        """Mark the current value as unknown, unless the history is empty."""
        if self._values:
            self._values.append((self._values[-1][0], None))

    @property
    def last(self) -> float | None:
        """The newest value, or None if there is none or the value is unknown."""
        return self._values[-1][1] if self._values else None

    def seconds(self, count_max: int | None = None) -> float:
        """Return the time from the oldest to the newest of so many values, in seconds."""
        values = self._values
        if not values:
            return 0.0
        count = len(values) if count_max is None else max(1, min(count_max, len(values)))
        return values[-1][0] - values[-count][0]

    def values(self, count_max: int | None = None) -> list[float | None]:
        """Return the newest values, at most ``count_max``, in chronological order."""
        count = len(self._values) if count_max is None else max(0, count_max)
        # From the newest on, since a chart may show a few of hundreds.
        found = [value for _, value in islice(reversed(self._values), count)]
        found.reverse()
        return found


class SteppedHistory(History):
    """A history with one value per interval, the largest that was read in it.

    A chart has a column per value, so values that are read each second while they are shown, and
    every ten seconds otherwise, would draw a minute as wide as ten. Here all columns are equally
    long. An interval without a read has the value before it, unless reads have stopped.

    Args:
        step_seconds: the duration of an interval, in seconds.
        held_max: the maximum number of intervals that a value fills after its own.
    """

    __slots__ = ("_held_max", "_newest", "_step_seconds")

    def __init__(self, step_seconds: float, held_max: int) -> None:
        super().__init__(values_max=round(SECONDS_MAX / step_seconds))
        self._step_seconds = step_seconds
        self._held_max = held_max
        self._newest = 0.0

    def add(self, at: float, value: float) -> None:
        """Add a value; the earlier value of the same interval is kept if it is larger."""
        step, newest = at // self._step_seconds, value
        before_at, before = self._values[-1] if self._values else (at, None)
        if before is not None:
            skipped = round(step - before_at / self._step_seconds) - 1
            if skipped < 0:
                value = max(value, before)
            for index in range(1, min(skipped, self._held_max) + 1):
                super().add(before_at + index * self._step_seconds, self._newest)
            if skipped > self._held_max:
                self.mark_unknown()
        super().add(step * self._step_seconds, value)
        self._newest = newest

    @property
    def last(self) -> float | None:
        """The newest value, which may be smaller than the one of its interval."""
        return None if super().last is None else self._newest


#: The shortest time of which there is a rate, in seconds: clocks come from JSON, too, and a growth
#: divided by the smallest numbers would be infinite.
RATE_SECONDS_MIN: Final = 1e-6


class Rate:
    """The growth rate of a counter between two reads.

    A decrease means that the counter was reset, for example because the broker was restarted. The
    rate is then unknown until the next read.
    """

    __slots__ = ("_at", "_count")

    def __init__(self) -> None:
        self._at: float | None = None
        self._count = 0.0

    def update(self, at: float, count: float) -> float | None:
        """Record a count at a time in seconds, and return the growth per second, or None."""
        before, self._at = self._at, at
        grown, self._count = count - self._count, count
        if before is None or at - before < RATE_SECONDS_MIN or grown < 0:
            return None
        return grown / (at - before)


class Unit(StrEnum):
    """The unit of a figure."""

    COUNT = "count"
    PER_SECOND = "per second"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes per second"
    SHARE = "share"
    """0 to 1."""
    SECONDS = "seconds"


@attrs.frozen
class FigureKind:
    """The title and the unit of a figure."""

    title: str
    unit: Unit


#: The kinds of figures, keyed by name, in the order in which they are exported.
FIGURES: Final[Mapping[str, FigureKind]] = {
    "requests": FigureKind("requests", Unit.PER_SECOND),
    "errors": FigureKind("errors", Unit.PER_SECOND),
    "bytes_in": FigureKind("bytes in", Unit.BYTES_PER_SECOND),
    "bytes_out": FigureKind("bytes out", Unit.BYTES_PER_SECOND),
    "connections": FigureKind("connections", Unit.COUNT),
    "connections_created": FigureKind("connections opened", Unit.PER_SECOND),
    "connections_closed": FigureKind("connections closed", Unit.PER_SECOND),
    "in_flight": FigureKind("requests in flight", Unit.COUNT),
    "muted": FigureKind("muted channels", Unit.COUNT),
    "staged": FigureKind("staged receives", Unit.COUNT),
    "request_queue": FigureKind("request queue", Unit.COUNT),
    "request_queue_max": FigureKind("queued.max.requests", Unit.COUNT),
    "response_queue": FigureKind("response queue", Unit.COUNT),
    "delayed": FigureKind("delayed fetches", Unit.COUNT),
    "fetch_sessions": FigureKind("fetch sessions", Unit.COUNT),
    "loop_idle": FigureKind("loop idle", Unit.SHARE),
    "processors_idle": FigureKind("processors idle", Unit.SHARE),
    "handlers_idle": FigureKind("handlers idle", Unit.SHARE),
    "acceptor_blocked": FigureKind("acceptor blocked", Unit.SHARE),
    "loop_lag_p50": FigureKind("loop lag p50", Unit.SECONDS),
    "loop_lag_p99": FigureKind("loop lag p99", Unit.SECONDS),
    "loop_lag_max": FigureKind("loop lag max", Unit.SECONDS),
    "loop_passes": FigureKind("loop passes", Unit.PER_SECOND),
    "memory_used": FigureKind("request memory", Unit.BYTES),
    "failed_authentications": FigureKind("failed authentications", Unit.COUNT),
    "cpu": FigureKind("CPU", Unit.SHARE),
    "resident": FigureKind("memory", Unit.BYTES),
    "open_files": FigureKind("open files", Unit.COUNT),
    "topics": FigureKind("topics", Unit.COUNT),
    "partitions": FigureKind("partitions", Unit.COUNT),
    "log_bytes": FigureKind("log", Unit.BYTES),
    "brokers": FigureKind("brokers", Unit.COUNT),
    "under_replicated": FigureKind("under-replicated partitions", Unit.COUNT),
    "leaderless": FigureKind("partitions without leader", Unit.COUNT),
    "groups": FigureKind("groups", Unit.COUNT),
    "lag": FigureKind("group lag", Unit.COUNT),
    "records": FigureKind("records", Unit.PER_SECOND),
}
#: The figures that are read more often while they are shown.
_STEPPED: Final = ("lag", "records")


class Figures(Mapping[str, float]):
    """The newest values, keyed by name; figures that are unknown or not reported are omitted."""

    def __init__(self) -> None:
        self._histories: dict[str, History] = {}

    def __getitem__(self, name: str) -> float:
        value = self._histories[name].last
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.reported() if self._histories[name].last is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def reported(self) -> list[str]:
        """Return the names of the figures that have been reported at least once."""
        return [name for name in FIGURES if name in self._histories]

    def history(self, name: str) -> History:
        """Return the history of a figure, which is empty if the figure has never been reported."""
        return self._histories.get(name) or History()

    def put(self, name: str, at: float, value: float | None) -> None:
        """Set the value of a figure. None marks a previously reported figure as unknown.

        Args:
            name: one of :data:`FIGURES`.
            at: the time in seconds on the source's clock.
            value: the value in the unit of the figure.
        """
        assert name in FIGURES, name
        if value is None:
            self.mark_unknown((name,))
            return
        history = self._histories.get(name)
        if history is None:
            is_stepped = name in _STEPPED
            history = self._histories[name] = (
                SteppedHistory(TREND_STEP_SECONDS, TREND_STEPS_HELD) if is_stepped else History()
            )
        history.add(at, value)

    def mark_unknown(self, names: Iterable[str]) -> None:
        """Mark figures as unknown because the source cannot be read."""
        for name in names:
            if name in self._histories:
                self._histories[name].mark_unknown()

    def forget(self, name: str) -> None:
        """Drop a figure that is no longer read."""
        self._histories.pop(name, None)
