"""Computes the figures of a broker's network layer from a snapshot; performs no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from . import _snapshot as names
from ._snapshot import MALFORMED, Labels, Readings

#: The figures shown without conversion, keyed by part of ``/snapshot``.
LEVELS: Final[Mapping[str, Mapping[str, Callable[[Any], float]]]] = {
    "processors": {
        "connections": lambda processors: sum(each["connections"] for each in processors),
        "in_flight": lambda processors: sum(each["in_flight"] for each in processors),
    },
    "queues": {
        "request_queue": lambda queues: queues["requests"],
        "request_queue_max": lambda queues: queues["requests_max"],
        "response_queue": lambda queues: sum(queues["responses"].values()),
    },
}
#: The counters, which are shown as rates, keyed by part of ``/snapshot``.
COUNTS: Final[Mapping[str, Mapping[str, Callable[[Any], float]]]] = {
    "totals": {
        "requests": lambda totals: totals["requests"],
        "bytes_in": lambda totals: totals["bytes_received"],
        "bytes_out": lambda totals: totals["bytes_sent"],
        "connections_created": lambda totals: totals["connections_created"],
        "connections_closed": lambda totals: totals["connections_closed"],
    },
}
#: The figure, metric and labels of each gauge.
_GAUGES: Final[tuple[tuple[str, str, Labels], ...]] = (
    ("delayed", names.PURGATORY, ("Fetch",)),
    ("fetch_sessions", names.FETCH_SESSIONS, ()),
    ("processors_idle", names.PROCESSORS_IDLE, ()),
    ("handlers_idle", names.HANDLERS_IDLE, ()),
    ("loop_lag_p50", names.LOOP_LAG, ("0.50",)),
    ("loop_lag_p99", names.LOOP_LAG, ("0.99",)),
    ("loop_lag_max", names.LOOP_LAG, ("1",)),
    ("memory_used", names.MEMORY_USED, ()),
    ("resident", names.RESIDENT_BYTES, ()),
    ("open_files", names.OPEN_FDS, ()),
    ("topics", names.TOPICS, ()),
    ("partitions", names.PARTITIONS, ()),
    ("log_bytes", names.LOG_BYTES, ()),
)
#: The figure and metric of each counter that is shown as a rate.
_COUNTERS: Final = (
    ("cpu", names.CPU_SECONDS),
    ("loop_idle", names.LOOP_IDLE_SECONDS),
    ("loop_passes", names.LOOP_PASSES),
)


def _largest(values: Iterable[float]) -> float:
    return max(values, default=0.0)


#: The figure, the metric, and the function that combines the values of all labels.
_COMBINED: Final[tuple[tuple[str, str, Callable[[Iterable[float]], float]], ...]] = (
    ("acceptor_blocked", names.BLOCKED, _largest),
    ("failed_authentications", names.FAILED_AUTHENTICATIONS, sum),
)


def read(
    figures: Mapping[str, Mapping[str, Callable[[Any], float]]], about: Mapping[str, Any]
) -> tuple[dict[str, float | None], set[str]]:
    """Return the values of figures, and the names of parts in an unknown format.

    Args:
        figures: :data:`LEVELS` or :data:`COUNTS`.
        about: the parts of ``/snapshot`` as JSON; the figures of absent parts are None.
    """
    found: dict[str, float | None] = {}
    unknown: set[str] = set()
    for part, numbers in figures.items():
        for name, number in numbers.items():
            found[name] = None
            if part in about:
                try:
                    found[name] = number(about[part])
                except MALFORMED:
                    unknown.add(part)
    return found, unknown


def gauges(readings: Readings) -> dict[str, float | None]:
    """Return the current values of gauges, keyed by figure; None if a gauge is not reported."""
    found = {name: readings.get(metric, {}).get(labels) for name, metric, labels in _GAUGES}
    for name, metric, combine in _COMBINED:
        if metric in readings:
            found[name] = combine(readings[metric].values())
    return found


def counters(readings: Readings) -> dict[str, float]:
    """Return the current values of counters, keyed by figure."""
    return {
        name: readings[metric][()] for name, metric in _COUNTERS if () in readings.get(metric, {})
    }
