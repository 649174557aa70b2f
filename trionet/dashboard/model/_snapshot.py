"""A broker's ``/snapshot`` with selected metrics, and the figures that are computed from both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from ...metrics._registry import Snapshot
from ._row_factory import number, row_factory

#: The exceptions that reading a value in an unexpected format can raise, which may be JSON of any
#: depth with numbers of any size.
MALFORMED: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)

Labels = tuple[str, ...]
Readings = Mapping[str, Mapping[Labels, float]]
"""Values by metric name and label values, which are in the order of :data:`METRICS`."""

PROCESSORS_IDLE: Final = "kafka_network_socketserver_networkprocessoravgidle_percent"
HANDLERS_IDLE: Final = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
MEMORY_USED: Final = "kafka_network_socketserver_memorypoolused"
BLOCKED: Final = "kafka_network_acceptor_acceptorblocked_percent"
FAILED_AUTHENTICATIONS: Final = "kafka_server_socket_server_metrics_failed_authentication_total"
PARTITIONS: Final = "kafka_controller_kafkacontroller_globalpartitioncount"
TOPICS: Final = "kafka_controller_kafkacontroller_globaltopiccount"
FETCH_SESSIONS: Final = "kafka_server_fetchsessioncache_numincrementalfetchsessions"
PURGATORY: Final = "kafka_server_delayedoperationpurgatory_purgatorysize"
LOG_BYTES: Final = "trionet_log_bytes"
LOOP_LAG: Final = "trionet_loop_lag_seconds"
LOOP_PASSES: Final = "trionet_loop_passes_total"
LOOP_IDLE_SECONDS: Final = "trionet_loop_idle_seconds_total"
CPU_SECONDS: Final = "process_cpu_seconds_total"
RESIDENT_BYTES: Final = "process_resident_memory_bytes"
OPEN_FDS: Final = "process_open_fds"

_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    BLOCKED: ("listener",),
    FAILED_AUTHENTICATIONS: ("listener", "networkProcessor"),
    PURGATORY: ("delayedOperation",),
    LOOP_LAG: ("quantile",),
}

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
    "channels": {
        "muted": lambda channels: channels["muted"],
        "staged": lambda channels: channels["staged"],
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
    ("delayed", PURGATORY, ("Fetch",)),
    ("fetch_sessions", FETCH_SESSIONS, ()),
    ("processors_idle", PROCESSORS_IDLE, ()),
    ("handlers_idle", HANDLERS_IDLE, ()),
    ("loop_lag_p50", LOOP_LAG, ("0.50",)),
    ("loop_lag_p99", LOOP_LAG, ("0.99",)),
    ("loop_lag_max", LOOP_LAG, ("1",)),
    ("memory_used", MEMORY_USED, ()),
    ("resident", RESIDENT_BYTES, ()),
    ("open_files", OPEN_FDS, ()),
    ("topics", TOPICS, ()),
    ("partitions", PARTITIONS, ()),
    ("log_bytes", LOG_BYTES, ()),
)
#: The figure and metric of each counter that is shown as a rate.
_COUNTERS: Final = (
    ("cpu", CPU_SECONDS),
    ("loop_idle", LOOP_IDLE_SECONDS),
    ("loop_passes", LOOP_PASSES),
)


#: The figure, the metric, and the function that combines the values of all labels.
_COMBINED: Final[tuple[tuple[str, str, Callable[[Iterable[float]], float]], ...]] = (
    ("acceptor_blocked", BLOCKED, max),
    ("failed_authentications", FAILED_AUTHENTICATIONS, sum),
)
#: The label names of the metrics that are read.
METRICS: Final[Mapping[str, tuple[str, ...]]] = {
    **{metric: _LABELS.get(metric, ()) for _, metric, _ in _GAUGES},
    **{metric: () for _, metric in _COUNTERS},
    **{metric: _LABELS.get(metric, ()) for _, metric, _ in _COMBINED},
}


@attrs.frozen
class BrokerSnapshot:
    """A broker's reported state at a point in time.

    Attributes:
        at: the time in seconds on the clock of the broker's loop.
        about: ``/snapshot`` as JSON, without lists and metrics.
        readings: the metrics.
    """

    at: float
    about: Mapping[str, Any]
    readings: Readings


@attrs.frozen
class ReportedAbout:
    """What a broker reports about itself in ``/snapshot``; see :class:`.About`."""

    trionet: str | None
    node_id: int | None
    cluster_id: str | None
    uptime_seconds: float | None
    listeners: tuple[str, ...] | None


reported_about: Final = row_factory(ReportedAbout)


def from_snapshot(snapshot: Snapshot, about: Mapping[str, Any]) -> BrokerSnapshot:
    """Convert the snapshot of a broker in this process."""
    found = {name: snapshot[name] for name in METRICS if name in snapshot}
    readings = {
        name: {sample.labels: sample.value for sample in family.samples}
        for name, family in found.items()
    }
    return BrokerSnapshot(snapshot.now, about, readings)


def from_json(page: Mapping[str, Any]) -> BrokerSnapshot:
    """Convert a parsed ``/snapshot`` page, ignoring metrics in an unexpected format.

    Raises:
        MALFORMED: the page does not contain the time of the snapshot, or no number as that.
    """
    readings = {}
    for name, labels in METRICS.items():
        try:
            readings[name] = _samples(page["metrics"][name], labels)
        except MALFORMED:
            continue
    return BrokerSnapshot(number(page["now"]), page, readings)


def _samples(metric: Mapping[str, Any], labels: tuple[str, ...]) -> dict[Labels, float]:
    return {
        tuple(sample["labels"].get(label, "") for label in labels): _number(sample["value"])
        for sample in metric["samples"]
    }


def _number(value: float | None) -> float:
    # None is NaN, which JSON does not have: nothing was measured.
    return 0.0 if value is None else number(value)


def read_figures(
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
        for name, value_of in numbers.items():
            found[name] = None
            if part in about:
                try:
                    found[name] = number(value_of(about[part]))
                except MALFORMED:
                    unknown.add(part)
    return found, unknown


def gauges(readings: Readings) -> dict[str, float | None]:
    """Return the current values of gauges, keyed by figure; None if a gauge is not reported."""
    found = {name: readings.get(metric, {}).get(labels) for name, metric, labels in _GAUGES}
    for name, metric, combine in _COMBINED:
        if metric in readings:
            found[name] = combine(readings[metric].values() or [0.0])
    return found


def counters(readings: Readings) -> dict[str, float]:
    """Return the current values of counters, keyed by figure."""
    return {
        name: readings[metric][()] for name, metric in _COUNTERS if () in readings.get(metric, {})
    }
