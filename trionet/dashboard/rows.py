"""The rows of the model, as views show them. A value that a source does not tell is None."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from .history import History

R = TypeVar("R")


@attrs.frozen
class About:
    """Whom the dashboard watches.

    Attributes:
        source: where it was found, such as ``PLAINTEXT://127.0.0.1:9092``.
        software: what it is and its version, as far as it tells.
        node_id: the broker whose network layer is shown.
        cluster_id: of the cluster.
        uptime_seconds: since it started.
        listeners: where it listens.
        controller: the id of the cluster's controller.
    """

    source: str = ""
    software: str | None = None
    node_id: int | None = None
    cluster_id: str | None = None
    uptime_seconds: float | None = None
    listeners: tuple[str, ...] = ()
    controller: int | None = None


@attrs.frozen
class ApiRow:
    """The requests of one API.

    Attributes:
        name: Kafka's name of it.
        requests: finished since the broker started.
        rate: finished per second, of late.
        errors: error codes in answers since the start.
        error_rate: per second, of late.
        phases_ms: the mean time of each of Kafka's seven phases in the last seconds, in the order
            of :data:`trionet.metrics.request_times.PHASES`; empty if nothing was finished.
        p50_ms, p99_ms, max_ms: of the total time in the last seconds; None if nothing was finished.
        buckets: how many were finished in the last seconds, by the longest time of each bucket in
            ms, ascending; buckets without any are left out.
        mean_bytes: the mean size of requests in the last seconds.
        history: of ``rate``.
        spreads: of each of the last looks, the oldest first, how many requests took how long: by
            the exponent of two that is the longest time in ms; None where that is not known.
    """

    name: str
    requests: int
    rate: float | None
    errors: int
    error_rate: float | None
    phases_ms: tuple[float, ...]
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    buckets: tuple[tuple[float, int], ...]
    mean_bytes: float | None
    history: History
    spreads: Sequence[Mapping[int, int] | None]


@attrs.frozen
class ConnectionRow:
    """An open connection; see ``/snapshot`` in docs/metrics.md for what the attributes mean."""

    number: int
    id: str
    listener: str
    processor: int
    peer: str | None
    principal: str
    software: str
    software_version: str
    client_id: str | None
    cipher: str | None
    protocol: str | None
    age_seconds: float
    idle_seconds: float
    requests: int
    bytes_received: int
    bytes_sent: int
    is_muted: bool
    mute_state: str | None
    phase: str | None
    request: str | None
    request_seconds: float | None
    staged: int | None


@attrs.frozen
class ClosedRow:
    """A connection that has ended."""

    number: int
    id: str
    listener: str
    processor: int
    peer: str
    principal: str
    reason: str
    reason_text: str
    detail: str
    age_seconds: float
    closed_seconds_ago: float
    requests: int
    bytes_received: int
    bytes_sent: int


@attrs.frozen
class CloseReasonRow:
    """How many connections ended for one reason, and how fast that number grows."""

    reason: str
    count: int
    rate: float | None


@attrs.frozen
class ProcessorRow:
    """A network processor; counts are since it started, rates of late."""

    id: int
    listener: str
    connections: int
    in_flight: int
    response_queue: int
    request_queue_full: int
    requests: int
    responses: int
    bytes_received: int
    bytes_sent: int
    request_rate: float | None
    response_rate: float | None
    bytes_received_rate: float | None
    bytes_sent_rate: float | None
    history: History


@attrs.frozen
class LogRow:
    """A line of the broker's log; ``time`` is in seconds since the epoch."""

    number: int
    time: float
    level: str
    logger: str
    text: str


@attrs.frozen
class FetchSessionRow:
    """An incremental fetch session (KIP-227)."""

    number: int
    id: int
    epoch: int
    partitions: int
    uses_topic_ids: bool
    idle_seconds: float


@attrs.frozen
class BrokerRow:
    """A broker of the cluster.

    Attributes:
        leads: partitions that it leads, as far as topics were read.
        bytes: in its logs; None if that is not known.
    """

    id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    leads: int | None
    bytes: int | None


@attrs.frozen
class TopicRow:
    """A topic.

    Attributes:
        partitions: how many it has.
        replicas: of each partition; the most that one has.
        under_replicated: partitions of which a replica is not in sync.
        leaderless: partitions that nobody leads.
        bytes: of all replicas together; None if that is not known.
        records: offsets from the first to the end of all partitions, which is how many records
            there are unless some were compacted or belong to transactions.
        rate: offsets that were added per second.
        history: of ``rate``.
    """

    name: str
    id: str
    is_internal: bool
    partitions: int
    replicas: int
    under_replicated: int
    leaderless: int
    bytes: int | None = None
    records: int | None = None
    rate: float | None = None
    history: History | None = None


@attrs.frozen
class PartitionRow:
    """A partition of a topic; ``leader`` is -1 while nobody leads it."""

    topic: str
    number: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    start_offset: int | None = None
    end_offset: int | None = None
    bytes: int | None = None
    rate: float | None = None


@attrs.frozen
class MemberRow:
    """A member of a group.

    Attributes:
        assignment: what it has, as ``(topic, partition)``.
        phase: what the group waits for from it, such as ``joining``; only our broker tells.
        expires_seconds: in how many seconds it is dropped unless it is heard of; only our broker
            tells.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[tuple[str, int], ...]
    epoch: int | None = None
    is_leader: bool | None = None
    phase: str | None = None
    expires_seconds: float | None = None


@attrs.frozen
class LagRow:
    """How far a group is behind in one partition.

    Attributes:
        committed: the offset that it goes on from; None if it has committed none.
        end: the end of the partition for consumers.
        lag: ``end - committed``; all there is where nothing is committed; None if not known.
        member: the id of the member that has the partition.
    """

    topic: str
    partition: int
    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    member: str | None
    metadata: str = ""


@attrs.frozen
class GroupRow:
    """A group.

    Attributes:
        type: ``classic``, ``consumer``, ``share`` or ``streams``; empty where it is not told.
        generation: of a classic group, which only our broker tells; else the group's epoch.
        members: how many; None before the group was described.
        lag: of all partitions that it has committed offsets of; None if not known.
        state_seconds: for how long it is in its state; only our broker tells.
        detail: its members; None before the group was described.
        lags: by partition; None before they were read.
        failure: why its members or its offsets could not be read, in a sentence.
        read_at: when they were, in seconds of the loop's clock.
    """

    id: str
    type: str
    state: str
    protocol_type: str
    assignor: str | None = None
    coordinator: int | None = None
    generation: int | None = None
    members: int | None = None
    lag: int | None = None
    state_seconds: float | None = None
    detail: tuple[MemberRow, ...] | None = None
    lags: tuple[LagRow, ...] | None = None
    failure: str | None = None
    read_at: float | None = None


@attrs.frozen
class ConfigRow:
    """A setting of a topic or a broker."""

    name: str
    value: str | None
    source: str
    is_default: bool
    is_read_only: bool
    is_sensitive: bool


@attrs.frozen
class QuotaRow:
    """A limit, what it is for, and what was measured of it.

    Attributes:
        entity: such as ``listener PLAINTEXT``, ``address 10.0.0.7`` or ``user=alice``.
        key: such as ``max.connections`` or ``producer_byte_rate``.
        limit: None if there is none.
        value: what was measured, in the limit's unit; None where that is not told.
        throttle_ms: how long who exceeds it waits, on average.
        refused: connections that were closed unserved, in all.
    """

    entity: str
    key: str
    limit: float | None = None
    value: float | None = None
    throttle_ms: float | None = None
    refused: int | None = None


@attrs.frozen
class TaskRow:
    """A task of trio in this process.

    Attributes:
        depth: how many tasks are above it.
        waits_in: the innermost function of it, and where that is.
    """

    number: int
    name: str
    depth: int
    children: int
    waits_in: str


def row_factory(row: Callable[..., R]) -> Callable[[Mapping[str, Any]], R]:
    """Makes rows of JSON objects: what a newer broker tells beyond is left out.

    What an older one does not tell is None.

    Args:
        row: one of the classes above.
    """
    kind: Any = row
    names = [field.name for field in attrs.fields(kind)]

    def make(values: Mapping[str, Any]) -> R:
        return row(*map(values.get, names))

    return make
