"""The requests of scenarios, and how their responses are written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from support.calls import bytes_of, fetch_request
from support.group_calls import commit_request
from support.transaction_rules.names import NOBODY, Names, Who, current
from support.transaction_rules.play import Call, error
from trionet.protocol._codec import Message
from trionet.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.delete_groups import DeleteGroupsRequest
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from trionet.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from trionet.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from trionet.protocol.messages.describe_transactions import DescribeTransactionsRequest
from trionet.protocol.messages.end_txn import EndTxnRequest
from trionet.protocol.messages.fetch import PartitionData
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from trionet.protocol.messages.list_transactions import ListTransactionsRequest
from trionet.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from trionet.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from trionet.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from trionet.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from trionet.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from trionet.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch, encode_batch, read_marker

PRODUCE, PRODUCE_BY_ID, FETCH, END, INIT, ADD_OFFSETS, TXN_COMMIT = 12, 13, 12, 5, 4, 4, 5

Partitions = str
"""``a-0 a-1 b-0``: the partitions of a request."""


def by_topic(partitions: Partitions) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for each in partitions.split():
        topic, _, index = each.rpartition("-")
        topics.setdefault(topic, []).append(int(index))
    return topics


def _each(results: Iterable[tuple[str, int, str]]) -> str:
    """Results of partitions in the order of their names; in short where all are the same."""
    lines = sorted(results)
    return ", ".join(f"{topic}-{index} {result}" for topic, index, result in lines) or "nothing"


def _topic(names: Names, full: str) -> str:
    """A participant: the coordinator's hash decides on the partition of an internal topic."""
    return names.short(full)


# The coordinator.


def init(
    transactional_id: str | None,
    expected: Who = NOBODY,
    *,
    timeout_ms: int = 60_000,
    version: int = INIT,
    enable_2pc: bool = False,
    keep_prepared: bool = False,
) -> Call:
    """InitProducerId; the identity that it gives is the current one from then on."""

    def text(names: Names) -> str:
        identity = expected(names)
        given = "" if identity == (-1, -1) else f" {names.shown(identity)}"
        more = "" if timeout_ms == 60_000 else f" timeout={timeout_ms}"
        more += " enable2Pc" * enable_2pc + " keepPrepared" * keep_prepared
        return f"InitProducerId v{version} {_id(transactional_id)}{given}{more}"

    def make(names: Names) -> Message:
        producer_id, epoch = expected(names)
        return InitProducerIdRequest(
            transactional_id=None if transactional_id is None else names.full(transactional_id),
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            enable2_pc=enable_2pc,
            keep_prepared_txn=keep_prepared,
        )

    def show(names: Names, response: Any) -> str:
        identity = response.producer_id, response.producer_epoch
        if response.error_code == 0 and transactional_id is not None:
            names.identities[transactional_id] = identity
        return f"{error(response.error_code)} {names.shown(identity)}"

    return Call(text, version, make, show)


def _id(transactional_id: str | None) -> str:
    return "null" if transactional_id is None else transactional_id or "''"


def _topics_to_add(names: Names, partitions: Partitions) -> list[AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnTopic(
            name=topic if topic.startswith("__") else names.full(topic), partitions=indexes
        )
        for topic, indexes in by_topic(partitions).items()
    ]


def _added(names: Names, topics: Iterable[Any]) -> str:
    return _each(
        (_topic(names, topic.name), each.partition_index, error(each.partition_error_code))
        for topic in topics
        for each in topic.results_by_partition
    )


def add(
    transactional_id: str, partitions: Partitions, who: Who | None = None, *, version: int = 3
) -> Call:
    """AddPartitionsToTxn of a client."""
    find = who or current(transactional_id)

    def text(names: Names) -> str:
        identity = names.shown(find(names))
        return f"AddPartitionsToTxn v{version} {_id(transactional_id)} {identity} {partitions}"

    def make(names: Names) -> Message:
        producer_id, epoch = find(names)
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=names.full(transactional_id),
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=_topics_to_add(names, partitions),
        )

    def show(names: Names, response: Any) -> str:
        return _added(names, response.results_by_topic_v3_and_below)

    return Call(text, version, make, show)


@attrs.frozen
class Addition:
    """One of the transactions in an AddPartitionsToTxn of a broker."""

    transactional_id: str
    partitions: Partitions
    who: Who | None = None
    verify_only: bool = False

    def identity(self, names: Names) -> tuple[int, int]:
        return (self.who or current(self.transactional_id))(names)


def add_several(*additions: Addition, version: int = 5) -> Call:
    """AddPartitionsToTxn of a broker for one or more transactions."""

    def text(names: Names) -> str:
        return f"AddPartitionsToTxn v{version} " + " + ".join(
            f"{_id(each.transactional_id)} {names.shown(each.identity(names))} {each.partitions}"
            + " verify" * each.verify_only
            for each in additions
        )

    def make(names: Names) -> Message:
        return AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=names.full(each.transactional_id),
                    producer_id=each.identity(names)[0],
                    producer_epoch=each.identity(names)[1],
                    verify_only=each.verify_only,
                    topics=_topics_to_add(names, each.partitions),
                )
                for each in additions
            ]
        )

    def show(names: Names, response: Any) -> str:
        results = sorted(
            f"{_id(names.short(each.transactional_id))}: {_added(names, each.topic_results)}"
            for each in response.results_by_transaction
        )
        return "; ".join([error(response.error_code), *results])

    return Call(text, version, make, show)


def add_offsets(
    transactional_id: str, group: str, who: Who | None = None, *, version: int = ADD_OFFSETS
) -> Call:
    """AddOffsetsToTxn."""
    find = who or current(transactional_id)

    def text(names: Names) -> str:
        identity = names.shown(find(names))
        return f"AddOffsetsToTxn v{version} {_id(transactional_id)} {identity} {group}"

    def make(names: Names) -> Message:
        producer_id, epoch = find(names)
        return AddOffsetsToTxnRequest(
            transactional_id=names.full(transactional_id),
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=names.full(group),
        )

    return Call(text, version, make, lambda _, response: error(response.error_code))


def end(transactional_id: str, *, commit: bool, who: Who | None = None, version: int = END) -> Call:
    """EndTxn; after success the next step finds the markers written."""
    find = who or current(transactional_id)

    def text(names: Names) -> str:
        result = "commit" if commit else "abort"
        return f"EndTxn v{version} {_id(transactional_id)} {names.shown(find(names))} {result}"

    def make(names: Names) -> Message:
        producer_id, epoch = find(names)
        return EndTxnRequest(
            transactional_id=names.full(transactional_id),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
        )

    def show(names: Names, response: Any) -> str:
        if version < 5:
            return error(response.error_code)
        identity = response.producer_id, response.producer_epoch
        if response.error_code == 0 and identity[0] >= 0:
            names.identities[transactional_id] = identity
        return f"{error(response.error_code)} {names.shown(identity)}"

    return Call(text, version, make, show, completes=transactional_id or None)


def commit(transactional_id: str, **fields: Any) -> Call:
    return end(transactional_id, commit=True, **fields)


def abort(transactional_id: str, **fields: Any) -> Call:
    return end(transactional_id, commit=False, **fields)


# Records.


@attrs.frozen
class Batch:
    """A batch of a Produce; `who` is None for the current identity of the transactional id."""

    sequence: int = 0
    who: Who | None = None
    records: int = 1
    is_transactional: bool = True
    is_control: bool = False

    def identity(self, names: Names, transactional_id: str | None) -> tuple[int, int]:
        return (self.who or current(transactional_id or ""))(names)

    def encoded(self, names: Names, transactional_id: str | None) -> bytes:
        producer_id, epoch = self.identity(names, transactional_id)
        return encode_batch(
            [(names.next_timestamp(), None, b"value", ())] * self.records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self.sequence,
            transactional=self.is_transactional,
            control=self.is_control,
        )

    def shown(self, names: Names, transactional_id: str | None) -> str:
        kind = "txn" if self.is_transactional else "plain"
        kind += " control" * self.is_control
        return f"{kind} {names.shown(self.identity(names, transactional_id))} seq={self.sequence}"


def produce(
    transactional_id: str | None,
    batches: Partitions | Mapping[str, Batch],
    sequence: int = 0,
    *,
    version: int = PRODUCE,
    who: Who | None = None,
) -> Call:
    """Produce: a batch to each partition.

    Args:
        transactional_id: of the request.
        batches: by partitions, or the partitions for transactional batches of `who`.
        sequence: of these batches.
        version: of the request.
        who: produces them.
    """
    wanted = (
        {each: Batch(sequence, who) for each in batches.split()}
        if isinstance(batches, str)
        else dict(batches)
    )

    def text(names: Names) -> str:
        shown = ", ".join(
            f"{partition} {each.shown(names, transactional_id)}"
            for partition, each in wanted.items()
        )
        return f"Produce v{version} {_id(transactional_id)} [{shown}]"

    def make(names: Names) -> Message:
        topics = by_topic(" ".join(wanted))
        return ProduceRequest(
            transactional_id=None if transactional_id is None else names.full(transactional_id),
            acks=-1,
            timeout_ms=5_000,
            topic_data=[
                TopicProduceData(
                    **(
                        {"topic_id": names.topic_ids[topic]}
                        if version >= PRODUCE_BY_ID
                        else {"name": names.full(topic)}
                    ),
                    partition_data=[
                        PartitionProduceData(
                            index=index,
                            records=wanted[f"{topic}-{index}"].encoded(names, transactional_id),
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in topics.items()
            ],
        )

    def show(names: Names, response: Any) -> str:
        ids = {id: topic for topic, id in names.topic_ids.items()}
        return _each(
            (
                ids[topic.topic_id] if version >= PRODUCE_BY_ID else names.short(topic.name),
                each.index,
                f"{error(each.error_code)} @{each.base_offset}",
            )
            for topic in response.responses
            for each in topic.partition_responses
        )

    return Call(text, version, make, show)


def markers(
    partitions: Partitions,
    who: Who,
    *,
    commit: bool,
    epochs: int = 0,
    transaction_version: int = 0,
    version: int = 2,
) -> Call:
    """WriteTxnMarkers of one marker.

    Args:
        partitions: where it is written.
        who: the producer.
        commit: the result.
        epochs: the coordinator's epoch, relative to that of the broker's coordinator.
        transaction_version: of the transaction, from version 2 of the request on.
        version: of the request.
    """

    def text(names: Names) -> str:
        rules = f" tv={transaction_version}" if version >= 2 else ""
        result = "commit" if commit else "abort"
        shown = f"{names.shown(who(names))} c{epochs:+}{rules} {result}"
        return f"WriteTxnMarkers v{version} {shown} {partitions}"

    def make(names: Names) -> Message:
        producer_id, epoch = who(names)
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=commit,
            topics=[
                WritableTxnMarkerTopic(name=names.full(topic), partition_indexes=indexes)
                for topic, indexes in by_topic(partitions).items()
            ],
            coordinator_epoch=names.coordinator_epoch + epochs,
            transaction_version=transaction_version,
        )
        return WriteTxnMarkersRequest(markers=[marker])

    def show(names: Names, response: Any) -> str:
        return "; ".join(
            f"{names.shown_producer(marker.producer_id)}: "
            + _each(
                (names.short(topic.name), each.partition_index, error(each.error_code))
                for topic in marker.topics
                for each in topic.partitions
            )
            for marker in response.markers
        )

    return Call(text, version, make, show)


def fetch(
    partition: Partitions, offset: int = 0, *, committed: bool = True, version: int = FETCH
) -> Call:
    """Fetch of one partition; with ``committed=False`` undecided records, too."""
    [(topic, [index])] = by_topic(partition).items()
    level = "read_committed" if committed else "read_uncommitted"

    def make(names: Names) -> Message:
        name = names.topic_ids[topic] if version > FETCH else names.full(topic)
        return fetch_request({name: {index: offset}}, isolation_level=int(committed))

    def show(names: Names, response: Any) -> str:
        if response.error_code:
            return error(response.error_code)
        [answered] = response.responses
        [data] = answered.partitions
        return _fetched(names, data)

    return Call(lambda _: f"Fetch v{version} {partition} @{offset} {level}", version, make, show)


def _fetched(names: Names, data: PartitionData) -> str:
    aborted = data.aborted_transactions
    listed = "null"
    if aborted is not None:
        found = sorted((each.first_offset, each.producer_id) for each in aborted)
        listed = " ".join(f"{names.shown_producer(id)}@{first}" for first, id in found)
        listed = f"[{listed}]"
    return (
        f"{error(data.error_code)} hw={data.high_watermark} lso={data.last_stable_offset}"
        f" start={data.log_start_offset} aborted={listed} [{_batches(names, data)}]"
    )


def _batches(names: Names, data: PartitionData) -> str:
    records = b"" if data.records is None else bytes_of(data)
    shown = []
    for position, header in iter_batches(records):
        decoded = decode_batch(records, position)
        first = header.base_offset
        text = f"{first}-{first + header.last_offset_delta}"
        if header.producer_id >= 0:
            text += f" {names.shown((header.producer_id, header.producer_epoch))}"
        if header.is_control:
            [(_, _, key, value, _)] = decoded
            marker = read_marker(key, value)
            assert marker is not None
            result = "commit" if marker.is_commit else "abort"
            text += f" {result} {names.shown_coordinator_epoch(marker.coordinator_epoch)}"
        elif header.is_transactional:
            text += " txn"
        shown.append(text)
    return ", ".join(shown)


def list_offsets(
    partition: Partitions, timestamp: int = -1, *, committed: bool = True, version: int = 7
) -> Call:
    """ListOffsets of one partition."""
    [(topic, [index])] = by_topic(partition).items()
    level = "read_committed" if committed else "read_uncommitted"
    kinds = {-1: "latest", -2: "earliest", -3: "max timestamp"}
    kind = kinds.get(timestamp, "by time")

    def make(names: Names) -> Message:
        wanted = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(committed) if version >= 2 else 0,
            topics=[ListOffsetsTopic(name=names.full(topic), partitions=[wanted])],
        )

    def show(_: Names, response: Any) -> str:
        [answered] = response.topics
        [found] = answered.partitions
        time = "none" if found.timestamp == -1 else "set"
        return f"{error(found.error_code)} {found.offset} time={time}"

    text = f"ListOffsets v{version} {partition} {kind} {level}"
    return Call(lambda _: text, version, make, show)


def delete_records(partition: Partitions, offset: int) -> Call:
    """DeleteRecords of one partition before an offset."""
    [(topic, indexes)] = by_topic(partition).items()

    def make(names: Names) -> Message:
        wanted = [DeleteRecordsPartition(partition_index=each, offset=offset) for each in indexes]
        return DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=names.full(topic), partitions=wanted)],
            timeout_ms=5_000,
        )

    def show(_: Names, response: Any) -> str:
        [answered] = response.topics
        [each] = answered.partitions
        return f"{error(each.error_code)} low={each.low_watermark}"

    return Call(lambda _: f"DeleteRecords {partition} @{offset}", 2, make, show)


def delete_topic(topic: str) -> Call:
    """DeleteTopics of one topic."""

    def make(names: Names) -> Message:
        wanted = [DeleteTopicState(name=names.full(topic))]
        return DeleteTopicsRequest(topics=wanted, timeout_ms=10_000)

    def show(_: Names, response: Any) -> str:
        [each] = response.responses
        return error(each.error_code)

    return Call(lambda _: f"DeleteTopics {topic}", 6, make, show)


# Offsets of groups.


@attrs.frozen
class Member:
    """Who commits in a group: generation, member and instance as the request has them."""

    generation: int = -1
    member: str = ""
    instance: str | None = None


ANYBODY = Member()


def txn_commit(
    transactional_id: str,
    group: str,
    offsets: Mapping[str, int],
    who: Who | None = None,
    *,
    member: Member = ANYBODY,
    metadata: str = "",
    version: int = TXN_COMMIT,
) -> Call:
    """TxnOffsetCommit of offsets by partition."""
    find = who or current(transactional_id)

    def text(names: Names) -> str:
        shown = ", ".join(f"{partition}={offset}" for partition, offset in offsets.items())
        given = "" if member == ANYBODY else f" {member.generation}/{_id(member.member)}"
        if member.instance is not None:
            given += f"/{member.instance}"
        more = f" metadata of {len(metadata)}" if metadata else ""
        return (
            f"TxnOffsetCommit v{version} {_id(transactional_id)} {names.shown(find(names))}"
            f" {_id(group)}{given} {shown}{more}"
        )

    def make(names: Names) -> Message:
        producer_id, epoch = find(names)
        return TxnOffsetCommitRequest(
            transactional_id=names.full(transactional_id),
            group_id=names.full(group),
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=member.generation,
            member_id=names.members.get(member.member, member.member),
            group_instance_id=member.instance,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=names.full(topic),
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[f"{topic}-{index}"],
                            committed_metadata=metadata,
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(" ".join(offsets)).items()
            ],
        )

    return Call(text, version, make, _committed)


def _committed(names: Names, response: Any) -> str:
    return _each(
        (names.short(topic.name), each.partition_index, error(each.error_code))
        for topic in response.topics
        for each in topic.partitions
    )


def plain_commit(group: str, partition: Partitions, offset: int) -> Call:
    """OffsetCommit of a simple consumer."""
    [(topic, [index])] = by_topic(partition).items()

    def make(names: Names) -> Message:
        return commit_request({names.full(topic): {index: offset}}, group=names.full(group))

    return Call(lambda _: f"OffsetCommit {group} {partition}={offset}", 9, make, _committed)


def fetch_offsets(
    group: str, partitions: Partitions | None, *, stable: bool = True, version: int = 9
) -> Call:
    """OffsetFetch; None asks for everything that is committed."""
    wanted = "all" if partitions is None else partitions
    text = f"OffsetFetch v{version} {group} {wanted}{' require_stable' * stable}"

    def make(names: Names) -> Message:
        topics = None
        if partitions is not None:
            topics = [
                OffsetFetchRequestTopics(name=names.full(topic), partition_indexes=indexes)
                for topic, indexes in by_topic(partitions).items()
            ]
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=names.full(group), topics=topics)],
            require_stable=stable,
        )

    def show(names: Names, response: Any) -> str:
        [found] = response.groups
        offsets = _each(
            (
                names.short(topic.name),
                each.partition_index,
                f"{error(each.error_code)} {each.committed_offset} {each.metadata!r}",
            )
            for topic in found.topics
            for each in topic.partitions
        )
        return f"{error(found.error_code)}; {offsets}"

    return Call(lambda _: text, version, make, show)


def delete_offsets(group: str, partitions: Partitions) -> Call:
    """OffsetDelete."""

    def make(names: Names) -> Message:
        return OffsetDeleteRequest(
            group_id=names.full(group),
            topics=[
                OffsetDeleteRequestTopic(
                    name=names.full(topic),
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ],
        )

    def show(names: Names, response: Any) -> str:
        return f"{error(response.error_code)}; {_committed(names, response)}"

    return Call(lambda _: f"OffsetDelete {group} {partitions}", 0, make, show)


def delete_group(group: str) -> Call:
    """DeleteGroups of one group."""

    def make(names: Names) -> Message:
        return DeleteGroupsRequest(groups_names=[names.full(group)])

    def show(_: Names, response: Any) -> str:
        [each] = response.results
        return error(each.error_code)

    return Call(lambda _: f"DeleteGroups {group}", 2, make, show)


# What shows state.


def describe(*transactional_ids: str) -> Call:
    """DescribeTransactions."""

    def make(names: Names) -> Message:
        return DescribeTransactionsRequest(
            transactional_ids=[names.full(each) for each in transactional_ids]
        )

    def show(names: Names, response: Any) -> str:
        return "; ".join(
            _described(names, each)
            for each in sorted(
                response.transaction_states, key=lambda each: str(each.transactional_id)
            )
        )

    shown = " ".join(map(_id, transactional_ids))
    return Call(lambda _: f"DescribeTransactions {shown}", 0, make, show)


def _described(names: Names, found: Any) -> str:
    if found.error_code:
        return f"{_id(names.short(found.transactional_id))} {error(found.error_code)}"
    partitions = " ".join(
        sorted(
            {
                # Which one depends on the group's name.
                topic.topic
                if topic.topic.startswith("__")
                else f"{names.short(topic.topic)}-{index}"
                for topic in found.topics
                for index in topic.partitions
            }
        )
    )
    start = "none" if found.transaction_start_time_ms == -1 else "set"
    return (
        f"{names.short(found.transactional_id)} {found.transaction_state}"
        f" {names.shown((found.producer_id, found.producer_epoch))}"
        f" timeout={found.transaction_timeout_ms} start={start} [{partitions}]"
    )


def list_transactions(
    *,
    states: Sequence[str] = (),
    producers: Sequence[Who] = (),
    duration_ms: int = -1,
    pattern: str | None = None,
    version: int = 2,
) -> Call:
    """ListTransactions; the pattern gets the prefix of the names."""

    def ids(names: Names) -> list[int]:
        return [each(names)[0] for each in producers]

    def text(names: Names) -> str:
        filters = [
            *states,
            *map(names.shown_producer, ids(names)),
            *([f"duration>{duration_ms}"] if duration_ms != -1 else []),
            *([f"/{pattern}/"] if pattern is not None else []),
        ]
        return f"ListTransactions v{version} {' '.join(filters)}".rstrip()

    def make(names: Names) -> Message:
        return ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=ids(names),
            duration_filter=duration_ms,
            transactional_id_pattern=None if pattern is None else names.full(pattern),
        )

    def show(names: Names, response: Any) -> str:
        found = sorted(
            f"{names.short(each.transactional_id)} {names.shown_producer(each.producer_id)}"
            f" {each.transaction_state}"
            for each in response.transaction_states
            if names.is_own(each.transactional_id)
        )
        unknown = " ".join(sorted(response.unknown_state_filters))
        unknown = f" unknown=[{unknown}]" if unknown else ""
        return f"{error(response.error_code)}{unknown}; {', '.join(found) or 'nothing'}"

    return Call(text, version, make, show)


def describe_producers(partitions: Partitions) -> Call:
    """DescribeProducers."""

    def make(names: Names) -> Message:
        return DescribeProducersRequest(
            topics=[
                TopicRequest(name=names.full(topic), partition_indexes=indexes)
                for topic, indexes in by_topic(partitions).items()
            ]
        )

    def show(names: Names, response: Any) -> str:
        return _each(
            (
                names.short(topic.name),
                each.partition_index,
                f"{error(each.error_code)} [{_producers(names, each.active_producers)}]",
            )
            for topic in response.topics
            for each in topic.partitions
        )

    return Call(lambda _: f"DescribeProducers {partitions}", 0, make, show)


def _producers(names: Names, producers: Iterable[Any]) -> str:
    return ", ".join(
        sorted(
            f"{names.shown((each.producer_id, each.producer_epoch))} seq={each.last_sequence}"
            f" time={'none' if each.last_timestamp == -1 else 'set'}"
            f" {names.shown_coordinator_epoch(each.coordinator_epoch)}"
            f" txn@{each.current_txn_start_offset}"
            for each in producers
        )
    )


def find_coordinator(key: str, *, version: int = 4) -> Call:
    """FindCoordinator of a transactional id."""

    def make(names: Names) -> Message:
        full = names.full(key)
        if version < 4:
            return FindCoordinatorRequest(key=full, key_type=1)
        return FindCoordinatorRequest(key_type=1, coordinator_keys=[full])

    def show(_: Names, response: Any) -> str:
        found = response if version < 4 else response.coordinators[0]
        where = "a node" if found.node_id >= 0 else "no node"
        return f"{error(found.error_code)} {where}"

    return Call(lambda _: f"FindCoordinator v{version} {_id(key)}", version, make, show)


# Features.

TRANSACTION_VERSION = "transaction.version"


def features(version: int) -> Call:
    """What ApiVersions says of transaction.version."""

    def make(_: Names) -> Message:
        return ApiVersionsRequest(client_software_name="test", client_software_version="1")

    def show(_: Names, response: Any) -> str:
        supported = [
            f"{each.min_version}-{each.max_version}"
            for each in response.supported_features
            if each.name == TRANSACTION_VERSION
        ]
        finalized = [
            f"{each.min_version_level}-{each.max_version_level}"
            for each in response.finalized_features
            if each.name == TRANSACTION_VERSION
        ]
        epoch = "known" if response.finalized_features_epoch >= 0 else "unknown"
        return (
            f"{error(response.error_code)} supported={supported or 'no'}"
            f" finalized={finalized or 'no'} epoch={epoch}"
        )

    return Call(lambda _: f"ApiVersions v{version} features", version, make, show)


def versions(keys: Sequence[int]) -> Call:
    """The versions of APIs that ApiVersions advertises."""

    def make(_: Names) -> Message:
        return ApiVersionsRequest(client_software_name="test", client_software_version="1")

    def show(_: Names, response: Any) -> str:
        ranges = {each.api_key: each for each in response.api_keys}
        shown = (
            f"{key}: {ranges[key].min_version}-{ranges[key].max_version}"
            if key in ranges
            else f"{key}: no"
            for key in keys
        )
        return ", ".join(shown)

    return Call(lambda _: "ApiVersions v4 versions", 4, make, show)


def update_features(
    levels: Mapping[str, int],
    *,
    kind: int = 1,
    allow_downgrade: bool = False,
    validate_only: bool = False,
    version: int = 2,
) -> Call:
    """UpdateFeatures.

    Args:
        levels: of features.
        kind: 1 upgrades, 2 downgrades safely, 3 downgrades in any case; from version 1 on.
        allow_downgrade: the same in version 0.
        validate_only: from version 1 on.
        version: of the request.
    """
    wanted = " ".join(f"{name}={level}" for name, level in levels.items())
    how = f"type={kind}" if version else f"downgrade={allow_downgrade}"
    text = f"UpdateFeatures v{version} {wanted} {how}{' validateOnly' * validate_only}"

    def make(_: Names) -> Message:
        return UpdateFeaturesRequest(
            timeout_ms=10_000,
            feature_updates=[
                FeatureUpdateKey(
                    feature=name,
                    max_version_level=level,
                    **({"upgrade_type": kind} if version else {"allow_downgrade": allow_downgrade}),
                )
                for name, level in levels.items()
            ],
            validate_only=validate_only,
        )

    def show(_: Names, response: Any) -> str:
        results = ", ".join(f"{each.feature} {error(each.error_code)}" for each in response.results)
        return f"{error(response.error_code)} [{results}]"

    return Call(lambda _: text, version, make, show)
