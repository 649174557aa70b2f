"""The operations that tests perform on a broker, and the views of groups and transactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import attrs
import trio

from ..broker.groups._group import GroupState
from ..broker.groups._members import Member
from ..broker.log import Log
from ..broker.run._new_topics import create_topic as create_topic_in
from ..broker.run._upkeep import apply_retention as apply_retention_of
from ..broker.transactions._transaction import Transaction, TransactionState
from ..errors import ApiError, WireFormatError
from ..protocol import error_codes
from ..protocol.messages.consumer_protocol_assignment import MESSAGES
from ._internals import BrokerInternals
from ._names import NO_TRANSACTION
from ._records import (
    NewRecord,
    Record,
    Seed,
    append,
    assign_partitions,
    check_keys,
    new_record,
    read_records,
)

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

_decode = MESSAGES[0][0]
_VERSION_BYTES = 2


@attrs.frozen
class GroupMember:
    """A member of a group.

    Attributes:
        id: the member id assigned by the broker.
        instance_id: the ``group.instance.id`` of a static member; None for a dynamic member.
        client_id: the client id of the member.
        client_host: the address from which the member connects.
        assignment: the numbers of the assigned partitions, keyed by topic.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: dict[str, list[int]]


@attrs.frozen
class GroupView:
    """A snapshot of a consumer group.

    Attributes:
        id: the group id.
        state: Kafka's name for the state; ``Dead`` if the group does not exist.
        generation: the generation, incremented by each rebalance; 0 before the first rebalance.
        protocol: the selected assignor; None if none is selected.
        members: the members of the group.
        offsets: the committed offsets, keyed by topic and partition.
    """

    id: str
    state: str = GroupState.DEAD.value
    generation: int = 0
    protocol: str | None = None
    members: list[GroupMember] = attrs.Factory(list)
    offsets: dict[tuple[str, int], int] = attrs.Factory(dict)


def group_view(inside: BrokerInternals, id: str) -> GroupView:
    """Return a snapshot of a group."""
    groups = inside.groups_of(id)
    if groups is None:
        return GroupView(id)
    group = groups.groups[id]
    return GroupView(
        id,
        group.state.value,
        group.generation,
        group.protocol_name,
        [_member(each) for each in group.members],
        {partition: each.offset for partition, each in groups.offsets.of(id).items()},
    )


def _member(member: Member) -> GroupMember:
    assignment: dict[str, list[int]] = {}
    try:
        if member.assignment:
            for topic in _decode(member.assignment, _VERSION_BYTES).assigned_partitions:
                assignment[topic.topic] = sorted(topic.partitions)
    except WireFormatError:
        pass  # of a protocol other than that of consumers
    return GroupMember(
        member.id, member.instance_id, member.client_id, member.client_host, assignment
    )


@attrs.frozen
class TransactionView:
    """A snapshot of a transactional id and its current or last transaction.

    Attributes:
        id: the transactional id.
        state: Kafka's name for the state; ``Dead`` if the id does not exist.
        producer_id: the producer id that the id's producer uses next; -1 if the id does not exist.
        producer_epoch: the epoch that goes with it.
        timeout_ms: the producer's ``transaction.timeout.ms``.
        partitions: the topics and partitions of the transaction that have no marker yet.
        groups: the consumer groups whose offsets the transaction will commit.
    """

    id: str
    state: str = NO_TRANSACTION
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = 0
    partitions: list[tuple[str, int]] = attrs.Factory(list)
    groups: list[str] = attrs.Factory(list)


def transaction_view(inside: BrokerInternals, id: str) -> TransactionView:
    """Return a snapshot of a transactional id."""
    cluster = inside.cluster
    transaction = cluster.transactions.transactions.get(id)
    if transaction is None or transaction.current is None:
        return TransactionView(id)
    current = transaction.current
    return TransactionView(
        id,
        current.state.value,
        current.producer_id,
        current.producer_epoch,
        current.timeout_ms,
        sorted((log.topic, log.partition) for log in transaction.partitions),
        sorted(cluster.group_store.pending.groups_of(current.producer_id)),
    )


def transaction_views(inside: BrokerInternals) -> dict[str, TransactionView]:
    """Return snapshots of all transactional ids that have been initialized."""
    transactions = inside.cluster.transactions.transactions
    return {
        id: transaction_view(inside, id)
        for id, each in sorted(transactions.items())
        if each.current is not None
    }


async def expire_transactions(inside: BrokerInternals, ids: Iterable[str] | None) -> list[str]:
    """Abort ongoing transactions, as if their timeouts had expired. Returns the ids."""
    if isinstance(ids, str):
        raise TypeError(f"invalid ids={ids!r}; expected a list of transactional ids, or None")
    coordinator = inside.cluster.transactions
    wanted: Collection[str] = coordinator.transactions.keys() if ids is None else set(ids)
    for id in wanted:
        if id not in coordinator.transactions:
            raise LookupError(f"transactional id {id} does not exist")

    def is_due(transaction: Transaction[Log]) -> bool:
        return (
            transaction.id in wanted
            and transaction.state is TransactionState.ONGOING
            and transaction.storing is None
        )

    await inside.cluster.writes.flush()  # partitions may be being added
    aborted = await coordinator.abort_all(is_due)
    await inside.cluster.writes.flush()
    return aborted


T = TypeVar("T")


@attrs.frozen
class Condition(Generic[T]):
    """A condition that a test waits for.

    Attributes:
        what: a description of the condition.
        poll: returns the result, or None while the condition is not met.
        so_far: returns a description of the current state.
    """

    what: str
    poll: Callable[[], T | None]
    so_far: Callable[[], str]


async def wait(inside: BrokerInternals, condition: Condition[T]) -> T:
    """Wait for a condition, and return its result. Always a checkpoint."""
    await trio.lowlevel.checkpoint()
    while (found := condition.poll()) is None:
        await inside.changes.park()
    return found


async def wait_with_timeout(inside: BrokerInternals, condition: Condition[T], seconds: float) -> T:
    """Wait for a condition with a timeout, and return its result.

    Raises:
        TimeoutError: the timeout expired; the message describes the current state.
    """
    with trio.move_on_after(seconds):
        return await wait(inside, condition)
    raise TimeoutError(
        f"timed out after {seconds} s waiting for {condition.what}; {condition.so_far()}"
    )


async def create_topic(
    inside: BrokerInternals, name: str, partitions: int | None, configs: Mapping[str, object]
) -> None:
    """Create a topic; the keys of configs may have underscores instead of dots."""
    await create_topic_in(inside.cluster, name, partitions, configs)


async def delete_topic(inside: BrokerInternals, name: str) -> None:
    """Delete a topic and its records."""
    topic = inside.cluster.topics.get(name)
    if topic is None:
        raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
    await inside.cluster.delete_topic(topic)


async def seed(inside: BrokerInternals, topic: str, records: Iterable[Seed]) -> list[Record]:
    """Append records to a topic, creating it if needed. Returns the appended records."""
    return await _store(inside, topic, [new_record(each, topic) for each in records])


async def load(inside: BrokerInternals, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
    """Append the records in a file to their topics. Returns the appended records by topic."""
    if inside.cluster.network.is_virtual:  # threads are not part of virtual time
        await trio.lowlevel.checkpoint()
        by_topic = read_records(path)
    else:
        by_topic = await trio.to_thread.run_sync(read_records, path)
    return {topic: await _store(inside, topic, records) for topic, records in by_topic.items()}


async def _store(inside: BrokerInternals, name: str, records: list[NewRecord]) -> list[Record]:
    state = inside.nodes[0].state
    topic = await inside.cluster.get_or_create_topic(name)
    if inside.cluster.log_config(topic.configs).is_compacted:
        check_keys(name, records)
    stored: list[Record] = []
    for index, assigned in sorted(assign_partitions(records, topic.partitions).items()):
        log = state.get_log(name, index)
        if log is None:  # the topic was deleted meanwhile
            raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
        before = log.size
        stored += await append(log, assigned, state.now_ms())
        if log.must_flush:
            await log.flush()
        state.appended(log, log.size - before)
        inside.changed()
    return stored


async def apply_retention(inside: BrokerInternals) -> None:
    """Apply retention now, as the broker does periodically."""
    await trio.lowlevel.checkpoint()
    await apply_retention_of(inside.cluster)
