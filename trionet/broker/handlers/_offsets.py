"""Implements OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete: the offsets of groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages import offset_commit, offset_delete, offset_fetch, txn_offset_commit
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._committed_offsets import CommittedOffset, Partition
from ..groups._group import CONSUMER, GroupState, subscribed_topics
from ..groups._members import Caller
from ..model._broker_state import BrokerState
from ..model._topic_store import Topic

# From this version on, there is a specific error for unknown groups (KIP-848).
GROUP_NOT_FOUND_VERSION = 9
TOPIC_ID_VERSION = 10
# The maximum timestamp of 64 bits.
_NEVER_MS = 2**63 - 1
_UNKNOWN = (error_codes.UNKNOWN_TOPIC_ID, error_codes.UNKNOWN_TOPIC_OR_PARTITION)

# Before this version, only partitions of OffsetFetch have an error code.
TOP_LEVEL_ERROR_VERSION = 2
MANY_GROUPS_VERSION = 8
# The value for a partition without a committed offset.
_NONE = CommittedOffset(-1, -1, "", 0)

# The first version whose clients know TRANSACTION_ABORTABLE (KIP-890).
ABORTABLE_VERSION = 4
# From this version on, TxnOffsetCommit adds the group to the transaction (KIP-890).
ADDING_VERSION = 5


@serves(api_keys.OFFSET_COMMIT, 0, 10)
async def handle_offset_commit(
    broker: BrokerState, request: offset_commit.OffsetCommitRequest, call: Call
) -> None:
    """Handle OffsetCommit, versions 0 to 10; version 10 uses topic ids.

    The response is sent once the offsets are stored, so that they are not lost if the broker is
    killed. Version 0, with which Kafka stored offsets in ZooKeeper, is treated like the others.
    """
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    now_ms = broker.now_ms()
    metadata_length_max = broker.config.integer("offset.metadata.max.bytes")
    retention_ms = request.retention_time_ms
    expires_at_ms = min(now_ms + retention_ms, _NEVER_MS) if retention_ms >= 0 else None
    offsets: dict[Partition, CommittedOffset] = {}
    topics = []
    found: dict[str, Topic | None] = {}
    has_known = False
    name: str | None
    for topic in request.topics:
        if call.version < TOPIC_ID_VERSION:
            known, name = broker.topics.get(topic.name), topic.name
        else:
            known = broker.topics.by_id(topic.topic_id)
            name = known.name if known is not None else None
        if name is not None:
            found[name] = known
        partitions = []
        if call.must_pause():
            await call.pause()
        for each in topic.partitions:
            if call.must_pause():
                await call.pause()
            error_code = _check(broker, name, each, metadata_length_max)
            has_known = has_known or error_code not in _UNKNOWN
            if not error_code and name is not None:
                offsets[name, each.partition_index] = CommittedOffset(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    each.commit_timestamp if each.commit_timestamp >= 0 else now_ms,
                    expires_at_ms,
                )
            partitions.append(
                offset_commit.OffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=error_code
                )
            )
        topics.append(
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    response = offset_commit.OffsetCommitResponse(topics=topics)
    if not has_known:
        call.respond(response)
        return
    if call.is_long:
        # Topics may have been deleted during the pauses. Respond as if it happened later.
        gone = {name for name, topic in found.items() if _is_gone(broker, name, topic)}
        offsets = {each: offset for each, offset in offsets.items() if each[0] not in gone}
    caller = Caller(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
    )
    new = call.version >= GROUP_NOT_FOUND_VERSION
    broker.groups.commit(
        request.group_id,
        caller,
        offsets,
        lambda code: _respond(call, response, code),
        missing=error_codes.GROUP_ID_NOT_FOUND if new else error_codes.ILLEGAL_GENERATION,
    )


def _is_gone(broker: BrokerState, name: str, before: Topic | None) -> bool:
    now = broker.topics.get(name)
    return before is None or now is None or now.id != before.id


def _check(
    broker: BrokerState,
    name: str | None,
    each: offset_commit.OffsetCommitRequestPartition
    | txn_offset_commit.TxnOffsetCommitRequestPartition,
    metadata_length_max: int,
) -> int:
    if name is None:
        return error_codes.UNKNOWN_TOPIC_ID
    if broker.get_log(name, each.partition_index) is None:
        return error_codes.UNKNOWN_TOPIC_OR_PARTITION
    if _is_longer(each.committed_metadata or "", metadata_length_max):
        return error_codes.OFFSET_METADATA_TOO_LARGE
    return error_codes.NONE


def _is_longer(metadata: str, length_max: int) -> bool:
    """Return whether a text is longer than the limit in UTF-16 units, which Kafka counts."""
    if 2 * len(metadata) <= length_max:
        return False
    return len(metadata.encode("utf-16-le")) // 2 > length_max


def _respond(call: Call, response: offset_commit.OffsetCommitResponse, error_code: int) -> None:
    if error_code:
        topics = response.topics
        response.topics = call.elements(
            (_failed_topic(call, topic, error_code) for topic in topics), len(topics)
        )
    call.respond(response)


def _failed_topic(
    call: Call, topic: offset_commit.OffsetCommitResponseTopic, error_code: int
) -> offset_commit.OffsetCommitResponseTopic:
    """Return the error response for a topic whose offsets could not be committed."""
    return offset_commit.OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=_failed(offset_commit.OffsetCommitResponsePartition, call, topic, error_code),
    )


def _failed(
    kind: Callable[..., object],
    call: Call,
    topic: offset_commit.OffsetCommitResponseTopic | txn_offset_commit.TxnOffsetCommitResponseTopic,
    error_code: int,
) -> Any:
    """Return the array of a topic's partitions; unknown ones keep their error."""
    partitions = topic.partitions
    return call.elements(
        (
            kind(
                partition_index=each.partition_index,
                error_code=each.error_code if each.error_code in _UNKNOWN else error_code,
            )
            for each in partitions
        ),
        len(partitions),
    )


@serves(api_keys.TXN_OFFSET_COMMIT, 0, 5)
async def handle_txn_offset_commit(
    broker: BrokerState, request: txn_offset_commit.TxnOffsetCommitRequest, call: Call
) -> None:
    """Handle TxnOffsetCommit, versions 0 to 5: offsets that wait for the end of a transaction.

    From version 5 on, the request adds the group to the transaction (KIP-890). The response is sent
    once the offsets are stored.
    """
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    now_ms = broker.now_ms()
    metadata_length_max = broker.config.integer("offset.metadata.max.bytes")
    offsets: dict[Partition, CommittedOffset] = {}
    topics = []
    found: dict[str, Topic | None] = {}
    has_known = False
    for topic in request.topics:
        found[topic.name] = broker.topics.get(topic.name)
        partitions = []
        if call.must_pause():
            await call.pause()
        for each in topic.partitions:
            if call.must_pause():
                await call.pause()
            error_code = _check(broker, topic.name, each, metadata_length_max)
            has_known = has_known or error_code not in _UNKNOWN
            if not error_code:
                offsets[topic.name, each.partition_index] = CommittedOffset(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    now_ms,
                )
            partitions.append(
                txn_offset_commit.TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=error_code
                )
            )
        topics.append(
            txn_offset_commit.TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions)
        )
    response = txn_offset_commit.TxnOffsetCommitResponse(topics=topics)
    if not has_known:
        call.respond(response)
        return
    if call.is_long:  # as for OffsetCommit
        gone = {name for name, known in found.items() if _is_gone(broker, name, known)}
        offsets = {each: offset for each, offset in offsets.items() if each[0] not in gone}
    _commit_in_transaction(broker, request, call, offsets, response)


def _commit_in_transaction(
    broker: BrokerState,
    request: txn_offset_commit.TxnOffsetCommitRequest,
    call: Call,
    offsets: Mapping[Partition, CommittedOffset],
    response: txn_offset_commit.TxnOffsetCommitResponse,
) -> None:
    """Check the transaction and then the group, as Kafka does, and store the offsets."""
    if not request.group_id:
        _respond_in_transaction(call, response, error_codes.INVALID_GROUP_ID)
        return
    try:
        broker.cluster.transactions.check_offsets(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.group_id,
            adds_group=call.version >= ADDING_VERSION,
        )
    except ApiError as error:
        code = transaction_error(error.error_code, call.version)
        _respond_in_transaction(call, response, code)
        return
    broker.groups.commit_in_transaction(
        request.group_id,
        Caller(request.member_id, request.group_instance_id, request.generation_id),
        request.producer_id,
        offsets,
        lambda code: _respond_in_transaction(call, response, code),
    )


def transaction_error(error_code: int, version: int) -> int:
    """Return the error code with which TxnOffsetCommit reports that its transaction is refused.

    Args:
        error_code: the error code of the transaction's coordinator.
        version: the version of the request.
    """
    if error_code == error_codes.TRANSACTION_ABORTABLE and version < ABORTABLE_VERSION:
        return error_codes.INVALID_TXN_STATE
    if error_code == error_codes.PRODUCER_FENCED:  # as the leader of a partition reports it
        return error_codes.INVALID_PRODUCER_EPOCH
    return error_code


def _respond_in_transaction(
    call: Call, response: txn_offset_commit.TxnOffsetCommitResponse, error_code: int
) -> None:
    if error_code:
        topics = response.topics
        response.topics = call.elements(
            (
                txn_offset_commit.TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=_failed(
                        txn_offset_commit.TxnOffsetCommitResponsePartition, call, topic, error_code
                    ),
                )
                for topic in topics
            ),
            len(topics),
        )
    call.respond(response)


@serves(api_keys.OFFSET_FETCH, 0, 10, only_responds=True)
async def handle_offset_fetch(
    broker: BrokerState, request: offset_fetch.OffsetFetchRequest, call: Call
) -> offset_fetch.OffsetFetchResponse:
    """Handle OffsetFetch, versions 0 to 10, which returns the committed offsets of groups.

    If the client requires stable offsets, partitions with pending offsets have the error
    UNSTABLE_OFFSET_COMMIT, and the client retries until their transactions have ended (KIP-447).
    Otherwise, pending offsets are ignored. Kafka also waits until all earlier writes are
    replicated; here, only stored offsets are in memory.
    """
    if call.version < MANY_GROUPS_VERSION:
        return await _one_group(broker, request, call)
    call.expect(len(request.groups))
    requested = []
    whole = set()
    for group in request.groups:
        if call.must_pause():
            await call.pause()
        if group.topics is None:
            if group.group_id in whole:
                continue  # all offsets of a group only once (Kafka: as often as requested)
            whole.add(group.group_id)
        requested.append(group)
    call.expect(sum(len(broker.groups.offsets.of(group_id)) for group_id in whole))
    groups = [await _group(broker, group, request.require_stable, call) for group in requested]
    return offset_fetch.OffsetFetchResponse(groups=groups)


async def _one_group(
    broker: BrokerState, request: offset_fetch.OffsetFetchRequest, call: Call
) -> offset_fetch.OffsetFetchResponse:
    """Handle a request in the format for a single group."""
    error_code = broker.groups.coordinator_error(request.group_id)
    if error_code and call.version >= TOP_LEVEL_ERROR_VERSION:
        return offset_fetch.OffsetFetchResponse(error_code=error_code)
    offsets = {} if error_code else broker.groups.offsets.of(request.group_id)
    unstable = _unstable(broker, request.group_id, request.require_stable)
    requested: Sequence[
        offset_fetch.OffsetFetchRequestTopic | offset_fetch.OffsetFetchRequestTopics
    ]
    if request.topics is None:
        call.expect(len(offsets))
        requested = await _all_topics(broker, offsets, call)
    else:
        requested = request.topics
    kind = offset_fetch.OffsetFetchResponsePartition
    topics = (
        offset_fetch.OffsetFetchResponseTopic(
            name=each.name,
            partitions=_partitions(
                kind, call, offsets, unstable, each.name, each.partition_indexes, error_code
            ),
        )
        for each in requested
    )
    return offset_fetch.OffsetFetchResponse(topics=call.elements(topics, len(requested)))


async def _group(
    broker: BrokerState,
    group: offset_fetch.OffsetFetchRequestGroup,
    require_stable: bool,
    call: Call,
) -> offset_fetch.OffsetFetchResponseGroup:
    if call.must_pause():
        await call.pause()
    error_code = broker.groups.coordinator_error(group.group_id)
    if error_code:
        return offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=error_code)
    offsets = broker.groups.offsets.of(group.group_id)
    requested = group.topics
    if requested is None:
        requested = await _all_topics(broker, offsets, call)
    elif call.version >= TOPIC_ID_VERSION:
        requested = await _unknown_last(broker, requested, call)
    unstable = _unstable(broker, group.group_id, require_stable)
    topics = (_topic(broker, call, offsets, unstable, each) for each in requested)
    return offset_fetch.OffsetFetchResponseGroup(
        group_id=group.group_id, topics=call.elements(topics, len(requested))
    )


async def _unknown_last(
    broker: BrokerState, requested: list[offset_fetch.OffsetFetchRequestTopics], call: Call
) -> list[offset_fetch.OffsetFetchRequestTopics]:
    """Return the topics in the order of Kafka's response: those with unknown ids are the last."""
    known: list[offset_fetch.OffsetFetchRequestTopics] = []
    unknown: list[offset_fetch.OffsetFetchRequestTopics] = []
    for topic in requested:
        if call.must_pause():
            await call.pause()
        is_known = broker.topics.by_id(topic.topic_id) is not None
        (known if is_known else unknown).append(topic)
    return known + unknown


def _unstable(broker: BrokerState, group_id: str, require_stable: bool) -> Collection[Partition]:
    """Return the partitions whose offsets the client must not use yet."""
    return broker.groups.pending.of(group_id) if require_stable else ()


async def _all_topics(
    broker: BrokerState, offsets: Mapping[Partition, CommittedOffset], call: Call
) -> list[offset_fetch.OffsetFetchRequestTopics]:
    """Return a request for all offsets of a group; with ids, only of topics that exist."""
    by_name: dict[str, list[int]] = {}
    for name, index in list(offsets):
        if call.must_pause():
            await call.pause()
        by_name.setdefault(name, []).append(index)
    topics = []
    for name in sorted(by_name):
        known = broker.topics.get(name)
        if known is not None or call.version < TOPIC_ID_VERSION:
            topic = offset_fetch.OffsetFetchRequestTopics(
                name=name, partition_indexes=sorted(by_name[name])
            )
            if known is not None:
                topic.topic_id = known.id
            topics.append(topic)
    return topics


def _topic(
    broker: BrokerState,
    call: Call,
    offsets: Mapping[Partition, CommittedOffset],
    unstable: Collection[Partition],
    requested: offset_fetch.OffsetFetchRequestTopics,
) -> offset_fetch.OffsetFetchResponseTopics:
    name = requested.name
    error_code = error_codes.NONE
    if call.version >= TOPIC_ID_VERSION:
        known = broker.topics.by_id(requested.topic_id)
        if known is None:
            error_code = error_codes.UNKNOWN_TOPIC_ID
        else:
            name = known.name
    kind = offset_fetch.OffsetFetchResponsePartitions
    return offset_fetch.OffsetFetchResponseTopics(
        name=requested.name,
        topic_id=requested.topic_id,
        partitions=_partitions(
            kind, call, offsets, unstable, name, requested.partition_indexes, error_code
        ),
    )


def _partitions(
    kind: Callable[..., object],
    call: Call,
    offsets: Mapping[Partition, CommittedOffset],
    unstable: Collection[Partition],
    topic: str,
    indexes: list[int],
    error_code: int,
) -> Any:
    """Return the array of a topic's partitions, with the class that the request's format has."""

    def partition(index: int) -> object:
        is_unstable = not error_code and (topic, index) in unstable
        committed = _NONE if is_unstable else offsets.get((topic, index), _NONE)
        return kind(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            error_code=error_codes.UNSTABLE_OFFSET_COMMIT if is_unstable else error_code,
        )

    return call.elements(map(partition, indexes), len(indexes))


@serves(api_keys.OFFSET_DELETE, 0, 0)
async def handle_offset_delete(
    broker: BrokerState, request: offset_delete.OffsetDeleteRequest, call: Call
) -> offset_delete.OffsetDeleteResponse | None:
    """Handle OffsetDelete, version 0, for topics that no member is subscribed to (KIP-496)."""
    if not request.group_id:
        return offset_delete.OffsetDeleteResponse(error_code=error_codes.INVALID_GROUP_ID)
    if broker.groups.coordinator_error(request.group_id):
        return offset_delete.OffsetDeleteResponse(error_code=error_codes.NOT_COORDINATOR)
    group = broker.groups.groups.get(request.group_id)
    if group is None or group.state is GroupState.DEAD:
        return offset_delete.OffsetDeleteResponse(error_code=error_codes.GROUP_ID_NOT_FOUND)
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
        return offset_delete.OffsetDeleteResponse(error_code=error_codes.NON_EMPTY_GROUP)
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    in_use = subscribed_topics(group)
    due: dict[Partition, None] = {}
    topics = []
    for topic in request.topics:
        partitions = []
        if call.must_pause():
            await call.pause()
        for each in topic.partitions:
            if call.must_pause():
                await call.pause()
            error_code = error_codes.NONE
            if broker.get_log(topic.name, each.partition_index) is None:
                error_code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
            elif in_use is None or topic.name in in_use:
                error_code = error_codes.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                due[topic.name, each.partition_index] = None
            partitions.append(
                offset_delete.OffsetDeleteResponsePartition(
                    partition_index=each.partition_index, error_code=error_code
                )
            )
        topics.append(
            offset_delete.OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)
        )
    if call.is_long:  # members may have joined during the pauses
        in_use = subscribed_topics(group)
        due = {} if in_use is None else {each: None for each in due if each[0] not in in_use}
    broker.groups.delete_offsets(
        request.group_id,
        due,
        lambda code: call.respond(
            offset_delete.OffsetDeleteResponse(error_code=code, topics=[] if code else topics)
        ),
    )
    return None
