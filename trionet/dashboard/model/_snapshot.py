"""A broker's ``/snapshot`` with selected metrics, from an object in this process or from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from ...metrics._registry import Snapshot

#: The exceptions that reading a value in an unexpected format can raise.
MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError)

Labels = tuple[str, ...]
Readings = Mapping[str, Mapping[Labels, float]]
"""Values by metric name and label values, which are in the order of :data:`METRICS`."""

_SERVER: Final = "kafka_server_socket_server_metrics_"
PROCESSORS_IDLE: Final = "kafka_network_socketserver_networkprocessoravgidle_percent"
HANDLERS_IDLE: Final = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
MEMORY_USED: Final = "kafka_network_socketserver_memorypoolused"
MEMORY_LEFT: Final = "kafka_network_socketserver_memorypoolavailable"
BLOCKED: Final = "kafka_network_acceptor_acceptorblocked_percent"
ACCEPT_RATE: Final = f"{_SERVER}broker_connection_accept_rate"
ACCEPT_RATES: Final = f"{_SERVER}connection_accept_rate"
ACCEPT_DELAY: Final = f"{_SERVER}connection_accept_throttle_time"
ADDRESS_DELAY: Final = f"{_SERVER}ip_connection_accept_throttle_time"
REFUSED: Final = "trionet_connections_refused_total"
FAILED_AUTHENTICATIONS: Final = f"{_SERVER}failed_authentication_total"
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
REQUEST_LOG_DROPPED: Final = "trionet_request_log_dropped_total"

#: The label names of the metrics that are read.
METRICS: Final[Mapping[str, tuple[str, ...]]] = {
    PROCESSORS_IDLE: (),
    HANDLERS_IDLE: (),
    MEMORY_USED: (),
    MEMORY_LEFT: (),
    BLOCKED: ("listener",),
    ACCEPT_RATE: (),
    ACCEPT_RATES: ("listener", "ip"),
    ACCEPT_DELAY: ("listener",),
    ADDRESS_DELAY: ("listener",),
    REFUSED: ("listener", "limit"),
    FAILED_AUTHENTICATIONS: ("listener", "networkProcessor"),
    PARTITIONS: (),
    TOPICS: (),
    FETCH_SESSIONS: (),
    PURGATORY: ("delayedOperation",),
    LOG_BYTES: (),
    LOOP_LAG: ("quantile",),
    LOOP_PASSES: (),
    LOOP_IDLE_SECONDS: (),
    CPU_SECONDS: (),
    RESIDENT_BYTES: (),
    OPEN_FDS: (),
    REQUEST_LOG_DROPPED: (),
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
        KeyError: the page does not contain the time of the snapshot.
    """
    readings = {}
    for name, labels in METRICS.items():
        try:
            readings[name] = _samples(page["metrics"][name], labels)
        except MALFORMED:
            continue
    return BrokerSnapshot(page["now"], page, readings)


def _samples(metric: Mapping[str, Any], labels: tuple[str, ...]) -> dict[Labels, float]:
    return {
        tuple(sample["labels"].get(label, "") for label in labels): _number(sample["value"])
        for sample in metric["samples"]
    }


def _number(value: float | None) -> float:
    return 0.0 if value is None else value  # NaN, which JSON does not have: nothing was measured
