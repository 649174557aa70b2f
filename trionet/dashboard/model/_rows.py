"""The rows of the model's lists. A value that the source does not report is None.

They are loaded when the first rows arrive: a first frame has none, and loading them takes longer
than drawing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from ...client._topic_partition import total_lag
from ...metrics._request_times import PHASES
from ._about import CLIENT_ID
from ._figures import RATE_SECONDS_MIN, History
from ._row_factory import row_factory


@attrs.frozen
class ApiRow:
    """The requests of one API.

    Attributes:
        name: the name of the API in Kafka.
        requests: the number of requests completed since the broker started.
        rate: the number of recently completed requests per second.
        errors: the number of error codes in responses since the broker started.
        error_rate: the number of recent error codes per second.
        phases_ms: the mean time of each of Kafka's seven phases within the window of
            :mod:`._rates`, in the order of :data:`trionet.metrics._request_times.PHASES`; empty
            if no request was completed within the window.
        p50_ms, p99_ms, max_ms: the median, the 99th percentile and the maximum of the total time
            within the window; None if no request was completed in it.
        buckets: the number of requests completed within the window, by upper bound of the total
            time in ms, ascending, without empty buckets.
        mean_bytes: the mean size of requests within the window.
        history: the history of ``rate``.
        spreads: the distributions of total times between reads, the oldest first; see
            :func:`._rates.spread`. None where unknown.
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
class ChannelCounts:
    """The open channels by what they do or wait for.

    Attributes:
        total: the number of open channels.
        examined: the number of channels that the other counts are about.
        muted: the number of channels that are not read because of a request or a throttle.
        staged: the number of frames that have been read and wait for their turn.
        with_staged: the number of channels with such frames.
        phases: the number of channels in each phase.
    """

    total: int
    examined: int
    muted: int
    staged: int
    with_staged: int
    phases: Mapping[str, int]


@attrs.frozen
class ConnectionRow:
    """An open connection. See ``/snapshot`` in docs/metrics.md for the other attributes.

    Attributes:
        request_rate: the number of requests per second since the read before.
        byte_rate: the number of bytes received and sent per second since the read before.
    """

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
    request_rate: float | None = None
    byte_rate: float | None = None

    @property
    def is_dashboard(self) -> bool:
        """Whether the client is a dashboard, such as this one."""
        return self.client_id is not None and self.client_id.startswith(CLIENT_ID)


@attrs.frozen
class RequestRow:
    """A finished request of the connection that is shown.

    Attributes:
        number: the number among the requests that the broker has recorded, ascending.
        time: when the request was received, in seconds since the epoch.
        api: the name of the API in Kafka, or another name of the request.
        error_code: the first error in the response; 0 for none.
        phases_ms: the time in each of Kafka's seven phases; see :attr:`ApiRow.phases_ms`. The
            throttle is 0 while it lasts.
    """

    number: int
    time: float
    api: str | None
    version: int | None
    client_id: str | None
    error_code: int
    request_bytes: int
    response_bytes: int
    phases_ms: tuple[float, ...]


@attrs.frozen
class FaultedRow:
    """A request to which a fault was applied, and what its client did next.

    Attributes:
        time: when the request was received, in seconds since the epoch.
        errors: the names of the errors in the response; empty if it has none or there is none.
        reaction: what the client did next, in words.
    """

    time: float
    api: str
    client_id: str | None
    connection: str
    errors: tuple[str, ...]
    reaction: str


@attrs.frozen
class FaultRow:
    """A fault that was injected into a broker under test.

    Attributes:
        which: the requests that it applies to, in words.
        action: what is done to them, in words.
        state: ``armed``, ``over``, ``holding`` if it is over but still holds requests, ``removed``,
            or how it failed.
        hits: the number of requests that it was applied to.
        times: the number of requests after which it is over; None if it is for all.
        requests: the last requests that it was applied to, the newest first.
    """

    number: int
    which: str
    action: str
    state: str
    hits: int
    times: int | None
    requests: tuple[FaultedRow, ...]


@attrs.frozen
class ClosedRow:
    """A closed connection."""

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
    """The number of connections closed for one reason, and the current rate per second."""

    reason: str
    count: int
    rate: float | None


@attrs.frozen
class ProcessorRow:
    """A network processor, with counters since the broker started and recent rates."""

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
    """An incremental fetch session (KIP-227) and the client that began it."""

    number: int
    id: int
    epoch: int
    partitions: int
    uses_topic_ids: bool
    idle_seconds: float
    client_id: str | None = None
    client_host: str | None = None


@attrs.frozen
class BrokerRow:
    """A broker of the cluster.

    Attributes:
        leads: the number of partitions that the broker leads in the topics that were read.
        bytes: the total size of the led partitions with a known size; None if no size is known.
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
        partitions: the number of partitions.
        replicas: the largest replication factor of a partition.
        under_replicated: the number of partitions with an out-of-sync replica.
        leaderless: the number of partitions without a leader.
        bytes: the size of all partitions; None if unknown.
        records: the number of offsets between start and end of all partitions, which includes
            compacted records and transaction markers.
        rate: the number of recently appended offsets per second.
        history: the history of ``rate``.
        dirty_ratio: the largest dirty ratio of a partition, from 0 to 1; None if the topic is not
            compacted, and from other brokers than trionet's.
        uncleanable: the number of partitions that are not cleaned any more; None as above.
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
    dirty_ratio: float | None = None
    uncleanable: int | None = None


@attrs.frozen
class CompactionRow:
    """How a partition of a compacted topic is cleaned.

    Attributes:
        dirty_ratio: the share of the log that the next cleaning would find dirty, from 0 to 1.
        cleaned_ms: when the last cleaning ended, in milliseconds since the epoch; None if there was
            none since the broker has started.
        bytes_before: the size of what it has cleaned, before.
        bytes_after: the size of what it has cleaned, afterwards.
        uncleanable: why the partition is not cleaned any more; None if it is.
    """

    dirty_ratio: float
    cleaned_ms: int | None
    bytes_before: int
    bytes_after: int
    uncleanable: str | None


@attrs.frozen
class PartitionRow:
    """A partition of a topic.

    Attributes:
        leader: the id of the leader; -1 if there is no leader.
        compaction: how the partition is cleaned; None if its topic is not compacted, and from other
            brokers than trionet's.
    """

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
    compaction: CompactionRow | None = None


@attrs.frozen
class MemberRow:
    """A member of a group.

    Attributes:
        assignment: the assigned partitions, as ``(topic, partition)``.
        phase: the step that the group expects of the member, such as ``joining``; from a trionet
            broker only.
        expires_seconds: the time until the member is removed unless it sends a heartbeat; from a
            trionet broker only.
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
    """The lag of a group in one partition.

    Attributes:
        committed: the committed offset; None if there is none.
        end: the end offset.
        lag: the number of offsets from ``committed`` to ``end``; None if either is unknown.
        member: the id of the member that owns the partition.
        position: the offset that the member fetches next; from a trionet broker only.
        unread: the number of offsets from ``position`` to ``end``; None if either is unknown.
    """

    topic: str
    partition: int
    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    member: str | None
    metadata: str = ""
    position: int | None = None
    unread: int | None = None


@attrs.frozen
class GroupRow:
    """A group.

    Attributes:
        type: ``classic``, ``consumer``, ``share`` or ``streams``; empty if not reported.
        generation: the generation of a classic group, from a trionet broker only, or the epoch of
            another group.
        members: the number of members; None until the group has been described.
        lag: the sum over partitions with a committed offset; None if unknown, as without a commit.
        unread: the sum over partitions with a known position; None if none is known.
        state_seconds: the time in the current state; from a trionet broker only.
        detail: the members; None until the group has been described.
        lags: the lag in each partition; None until it has been read.
        failure: why members or offsets could not be read, as a sentence.
        read_at: the time when members and offsets were last read, in seconds on the loop's clock.
        history: the history of ``lag``; None until it has been read.
        moved: the partitions that have another owner since the last rebalance, if it was recent.
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
    unread: int | None = None
    history: History | None = None
    moved: tuple[tuple[str, int], ...] = ()


@attrs.frozen
class MemberInternals:
    """A member of a group in a broker's snapshot; see :class:`MemberRow`."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    is_leader: bool
    phase: str
    expires_seconds: float | None


@attrs.frozen
class GroupInternals:
    """A group in a broker's snapshot; see :class:`GroupRow`.

    Attributes:
        positions: the offsets that the members fetch next, with topic and partition.
    """

    id: str
    state: str
    state_seconds: float
    generation: int
    protocol_type: str | None
    protocol: str | None
    members: tuple[MemberInternals, ...]
    positions: tuple[tuple[str, int, int], ...] | None = None


@attrs.frozen
class TransactionPartitionRow:
    """A partition of an open transaction.

    Attributes:
        first_offset: the offset of the transaction's first record there; None if there is none.
        idle_seconds: the time since its producer's last record there.
    """

    topic: str
    partition: int
    first_offset: int | None = None
    idle_seconds: float | None = None


@attrs.frozen
class TransactionRow:
    """A transactional id, or an open transaction that belongs to none.

    Attributes:
        id: the transactional id; empty if no transactional id is known.
        producer_id: the producer id, which may change.
        epoch: the producer epoch.
        age_seconds: the time since the open transaction began, or since its last record if ``id``
            is empty; None if no transaction is open.
        timeout_seconds: the transaction timeout.
        coordinator: the id of the broker that coordinates it.
        hangs: why no coordinator will end it; None if it does not hang.
        partitions: the partitions without a marker; None until the id has been described.
    """

    id: str
    producer_id: int
    state: str
    epoch: int | None = None
    age_seconds: float | None = None
    timeout_seconds: float | None = None
    coordinator: int | None = None
    hangs: str | None = None
    partitions: tuple[TransactionPartitionRow, ...] | None = None


def transaction_from_snapshot(values: Mapping[str, Any]) -> TransactionRow:
    """Return the row of an entry under ``transactions`` in a broker's snapshot."""
    partitions = [{"topic": topic, "partition": number} for topic, number in values["partitions"]]
    return _transaction_row({**values, "partitions": partitions})


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
    """A quota or limit with its current use.

    Attributes:
        entity: the subject of the limit, such as ``listener PLAINTEXT``, ``address 10.0.0.7`` or
            ``user=alice``.
        key: the name of the limit, such as ``max.connections`` or ``producer_byte_rate``.
        limit: the limit; None if unlimited.
        value: the current use in the limit's unit; None if not reported.
        throttle_ms: the mean throttle time of clients that exceed the limit.
        refused: the number of connections refused since the broker started.
    """

    entity: str
    key: str
    limit: float | None = None
    value: float | None = None
    throttle_ms: float | None = None
    refused: int | None = None


@attrs.frozen
class TaskRow:
    """A trio task of the broker's loop, or a nursery of a task that has several.

    Attributes:
        number: the number of the task; negative for a nursery.
        parent: the number of the task that opened its nursery; None for the root.
        nursery: the index of its nursery among those of the parent.
        children: the number of tasks in its nurseries.
        nurseries: the number of its nurseries.
        waits_in: the innermost waiting function outside trio, with module and line if known.
        waits_for: trio's function that is called there, such as ``sleep``.
        busy_seconds, steps: the time and the number of the steps that were measured.
        measured_seconds: how long they have been measured.
        share: the share of the loop's time since the read before, 0 to 1.
        step_rate: the number of steps per second since the read before.
        lasts: for each level of the tree, whether the row or its ancestor there is the last one.
    """

    number: int
    parent: int | None
    nursery: int
    name: str
    children: int
    nurseries: int
    waits_in: str
    waits_for: str
    busy_seconds: float
    steps: int
    measured_seconds: float
    share: float | None = None
    step_rate: float | None = None
    lasts: tuple[bool, ...] = ()


def request_row(values: Mapping[str, Any]) -> RequestRow:
    """Return the row of an entry under ``/snapshot/requests``."""
    phases = values["phases_ms"]
    return _request_row({**values, "phases_ms": tuple(phases[phase] for phase in PHASES)})


def fault_row(values: Mapping[str, Any]) -> FaultRow:
    """Return the row of an entry under ``/snapshot/faults``."""
    requests = [{**each, "errors": each["errors"] or ()} for each in values["requests"]]
    return _fault_row({**values, "requests": requests})


def task_row(values: Mapping[str, Any], before: TaskRow | None) -> TaskRow:
    """Return the row of a task, with its share of the time if it was there at the read before.

    Args:
        values: the entry under ``/snapshot/tasks``.
        before: the row of the read before.
    """
    row = _task_row({**values, "lasts": ()})
    if row.number < 0:
        raise ValueError("negative numbers are those of nurseries")
    seconds = 0.0 if before is None else row.measured_seconds - before.measured_seconds
    if before is None or seconds < RATE_SECONDS_MIN or row.steps < before.steps:
        return row
    return attrs.evolve(
        row,
        share=min(1.0, (row.busy_seconds - before.busy_seconds) / seconds),
        step_rate=(row.steps - before.steps) / seconds,
    )


def connection_row(values: Mapping[str, Any], before: ConnectionRow | None) -> ConnectionRow:
    """Return the row of an open connection, with rates if it was open at the read before.

    Args:
        values: the entry under ``connections`` in a broker's snapshot.
        before: the row of the read before.
    """
    row = _connection_row(values)
    # The age is a clock of the broker, which needs no other.
    seconds = 0.0 if before is None else row.age_seconds - before.age_seconds
    if before is None or seconds < RATE_SECONDS_MIN or row.id != before.id:
        return row
    grown = row.bytes_received + row.bytes_sent - before.bytes_received - before.bytes_sent
    return attrs.evolve(
        row,
        request_rate=(row.requests - before.requests) / seconds,
        byte_rate=grown / seconds,
    )


def committed_lag(lags: Iterable[LagRow]) -> int | None:
    """Return the total lag of the partitions with a committed offset, or None if it is unknown."""
    return total_lag(each.lag for each in lags if each.committed is not None)


def with_internals(row: GroupRow, inside: GroupInternals) -> GroupRow:
    """Merge the row of a group with its entry in a broker's snapshot.

    Args:
        row: the row reported by the cluster.
        inside: the group in the broker's snapshot.
    """
    detail, lags, lag, unread = row.detail, row.lags, row.lag, None
    if lags is not None:
        positions = {(topic, number): at for topic, number, at in inside.positions or ()}
        lags = tuple(_lag_with_position(each, positions) for each in lags)
        known = [each.unread for each in lags if each.unread is not None]
        unread = sum(known) if known else None
        lag = committed_lag(lags)
    if detail is not None:
        members = {member.id: member for member in inside.members}
        detail = tuple(_member_with_internals(member, members.get(member.id)) for member in detail)
    return attrs.evolve(
        row,
        state=inside.state,
        state_seconds=inside.state_seconds,
        generation=inside.generation,
        members=len(inside.members),
        detail=detail,
        lags=lags,
        lag=lag,
        unread=unread,
    )


def _lag_with_position(row: LagRow, positions: Mapping[tuple[str, int], int]) -> LagRow:
    position = positions.get((row.topic, row.partition))
    if position is None or row.end is None:
        return attrs.evolve(row, position=position, unread=None)
    # The end was read earlier than the position, and cannot be below it.
    end = max(row.end, position)
    lag = None if row.lag is None else row.lag + end - row.end
    return attrs.evolve(row, end=end, lag=lag, position=position, unread=end - position)


def _member_with_internals(member: MemberRow, inside: MemberInternals | None) -> MemberRow:
    if inside is None:
        return member
    return attrs.evolve(
        member,
        is_leader=inside.is_leader,
        phase=inside.phase,
        expires_seconds=inside.expires_seconds,
    )


def from_internals(inside: GroupInternals) -> GroupRow:
    """Return the row of a group that only the broker's snapshot contains."""
    row = GroupRow(
        inside.id,
        "classic",
        inside.state,
        inside.protocol_type or "",
        inside.protocol,
        detail=tuple(
            MemberRow(member.id, member.instance_id, member.client_id, member.client_host, ())
            for member in inside.members
        ),
    )
    return with_internals(row, inside)


_connection_row = row_factory(ConnectionRow)
_fault_row = row_factory(FaultRow)
_task_row = row_factory(TaskRow)
_request_row = row_factory(RequestRow)
_transaction_row = row_factory(TransactionRow)
processor_row = row_factory(ProcessorRow)
quota_row = row_factory(QuotaRow)
group_internals = row_factory(GroupInternals)

#: The functions that convert rows, keyed by the name of the list in ``/snapshot``.
MAKERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "recently_closed": row_factory(ClosedRow),
    "fetch_sessions": row_factory(FetchSessionRow),
    "log": row_factory(LogRow),
    "faults": fault_row,
}
#: The functions that convert rows given the row of the read before, or None, for rates.
GROWN: Final[Mapping[str, Callable[[Mapping[str, Any], Any], Any]]] = {
    "connections": connection_row,
    "tasks": task_row,
}
channel_counts = row_factory(ChannelCounts)
