"""The numbers of the overview, each with its history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

import attrs

from .history import History


class Unit(StrEnum):
    """What a number counts."""

    COUNT = "count"
    PER_SECOND = "per second"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes per second"
    SHARE = "share"
    """0 to 1."""
    SECONDS = "seconds"


@attrs.frozen
class FigureKind:
    """What a figure means: what it is called, and in which unit."""

    title: str
    unit: Unit


#: By name, in the order in which they are told.
FIGURES: Final[Mapping[str, FigureKind]] = {
    "requests": FigureKind("requests", Unit.PER_SECOND),
    "errors": FigureKind("errors", Unit.PER_SECOND),
    "bytes_in": FigureKind("bytes in", Unit.BYTES_PER_SECOND),
    "bytes_out": FigureKind("bytes out", Unit.BYTES_PER_SECOND),
    "connections": FigureKind("connections", Unit.COUNT),
    "connections_created": FigureKind("connections made", Unit.PER_SECOND),
    "connections_closed": FigureKind("connections ended", Unit.PER_SECOND),
    "in_flight": FigureKind("requests out", Unit.COUNT),
    "request_queue": FigureKind("request queue", Unit.COUNT),
    "request_queue_max": FigureKind("queued.max.requests", Unit.COUNT),
    "response_queue": FigureKind("response queue", Unit.COUNT),
    "delayed": FigureKind("waiting calls", Unit.COUNT),
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
    "cpu": FigureKind("processor time", Unit.SHARE),
    "resident": FigureKind("memory", Unit.BYTES),
    "open_files": FigureKind("open files", Unit.COUNT),
    "topics": FigureKind("topics", Unit.COUNT),
    "partitions": FigureKind("partitions", Unit.COUNT),
    "log_bytes": FigureKind("log", Unit.BYTES),
    "brokers": FigureKind("brokers", Unit.COUNT),
    "under_replicated": FigureKind("under-replicated partitions", Unit.COUNT),
    "leaderless": FigureKind("partitions without leader", Unit.COUNT),
    "groups": FigureKind("groups", Unit.COUNT),
    "lag": FigureKind("lag of all groups", Unit.COUNT),
}


class Figures(Mapping[str, float]):
    """The newest values by name; what no source tells, or can tell now, is not there."""

    def __init__(self) -> None:
        self._histories: dict[str, History] = {}

    def __getitem__(self, name: str) -> float:
        value = self._histories[name].last
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.told() if self._histories[name].last is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def told(self) -> list[str]:
        """The names of those that a source has told, also if it cannot any more."""
        return [name for name in FIGURES if name in self._histories]

    def history(self, name: str) -> History:
        """What a figure was of late; empty if no source tells it."""
        return self._histories.get(name) or History()

    def put(self, name: str, at: float, value: float | None) -> None:
        """Take a value; None of a figure that was told before is not known any more.

        Args:
            name: one of :data:`FIGURES`.
            at: the time, in seconds of the source's clock.
            value: in the figure's unit.
        """
        assert name in FIGURES, name
        if value is None:
            self.mark_unknown((name,))
            return
        self._histories.setdefault(name, History()).add(at, value)

    def mark_unknown(self, names: Iterable[str]) -> None:
        """Take that these are not known now, since whoever tells them does not answer."""
        for name in names:
            if name in self._histories:
                self._histories[name].mark_unknown()

    def forget(self, name: str) -> None:
        """Have a figure as if nobody had told it: nobody looks at it any more."""
        self._histories.pop(name, None)
