"""Partitions: their offsets, their records, their leaders and where their replicas are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final

import attrs

from ....errors import TrionetError, UnsupportedVersionError
from ....protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ....protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ....protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from ....protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ....protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from ..._api_errors import api_error
from ..._node import Node
from ..._topic_partition import TopicPartition
from ..calls._argument_checks import items, mapping
from ..calls._conversions import AdminCalls, by_topic, check, failure
from ..calls._nodes import CONTROLLER_CODES, LEADER_CODES
from ..calls._results import Results

HIGH_WATERMARK: Final = -1
"""As an offset: the end of what is committed."""

_CONSUMER: Final = -1


class OffsetSpec(IntEnum):
    """Which offset of a partition is wanted, in place of one by its time."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """Of the record with the newest timestamp (KIP-734)."""

    EARLIEST_LOCAL = -4
    """The first that is on the broker's own disk (KIP-405)."""

    LATEST_TIERED = -5
    """The last that is in remote storage (KIP-1005)."""

    EARLIEST_PENDING_UPLOAD = -6
    """The first that is not in remote storage yet (KIP-1023)."""


_VERSIONS: Final = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


class ElectionType(IntEnum):
    """Who may become the leader."""

    PREFERRED = 0
    """The first replica, if it is in sync."""

    UNCLEAN = 1
    """Any replica, if no other is there: records may be lost."""


@attrs.frozen
class ListedOffset:
    """An offset of a partition.

    Attributes:
        offset: None if there is no such record.
        timestamp: of the record, in milliseconds since 1970; -1 where it is not told.
        leader_epoch: of the record; -1 where it is not known.
    """

    offset: int | None
    timestamp: int
    leader_epoch: int


@attrs.frozen
class Reassignment:
    """A partition on its way to other brokers.

    Attributes:
        replicas: all that have it, or are getting it.
        adding: those that are getting it.
        removing: those that will not have it any more.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionCalls(AdminCalls):
    """Calls about partitions."""

    async def list_offsets(
        self, partitions: Mapping[TopicPartition, OffsetSpec | int], *, read_committed: bool = False
    ) -> Results[TopicPartition, ListedOffset]:
        """Find offsets.

        Args:
            partitions: which offset of each: one of the specs, or the first record from a time on,
                in milliseconds since 1970.
            read_committed: look at what is not in an open transaction only.

        Returns:
            By partition, its offset or why it is not known.

        Raises:
            TypeError, ValueError: a spec is none.
            TrionetError: the request as a whole failed.
        """
        partitions = mapping(partitions, TopicPartition, OffsetSpec, int)
        needed = {
            key: max(2 if read_committed else 1, _version_of(spec))
            for key, spec in partitions.items()
        }

        async def ask(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, ListedOffset | TrionetError]:
            body = ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=int(read_committed),
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=n, timestamp=partitions[TopicPartition(topic, n)]
                            )
                            for n in numbers
                        ],
                    )
                    for topic, numbers in by_topic(keys).items()
                ],
                timeout_ms=self._calls.timeout_ms,
            )
            version = max(needed[key] for key in keys)
            try:
                answer: ListOffsetsResponse = await self._calls.client.request(
                    node, body, version_min=version
                )
            except UnsupportedVersionError as error:
                # It was not sent. Who asks for what all versions have need not suffer for those
                # who do not (Kafka: ListOffsetsHandler.handleUnsupportedVersionException).
                others = [key for key in keys if needed[key] < version]
                if not others:
                    raise
                return {**dict.fromkeys(keys, error), **await ask(node, others)}
            return {
                TopicPartition(topic.name, each.partition_index): _listed(topic.name, each)
                for topic in answer.topics
                for each in topic.partitions
            }

        return await self._calls.each(partitions, self._calls.at_leaders, ask, LEADER_CODES)

    async def delete_records(
        self, partitions: Mapping[TopicPartition, int]
    ) -> Results[TopicPartition, int]:
        """Delete all records before an offset.

        Args:
            partitions: the first offset that stays; :data:`HIGH_WATERMARK` for none.

        Returns:
            By partition, the first offset that is left or why nothing was deleted.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: records may be deleted.
        """
        partitions = mapping(partitions, TopicPartition, int)

        async def ask(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, int | TrionetError]:
            answer: DeleteRecordsResponse = await self._calls.client.request(
                node,
                DeleteRecordsRequest(
                    topics=[
                        DeleteRecordsTopic(
                            name=topic,
                            partitions=[
                                DeleteRecordsPartition(
                                    partition_index=n, offset=partitions[TopicPartition(topic, n)]
                                )
                                for n in numbers
                            ],
                        )
                        for topic, numbers in by_topic(keys).items()
                    ],
                    timeout_ms=self._calls.timeout_ms,
                ),
            )
            found: dict[TopicPartition, int | TrionetError] = {}
            for topic in answer.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    found[key] = failure(each.error_code, str(key)) or each.low_watermark
            return found

        return await self._calls.each(partitions, self._calls.at_leaders, ask, LEADER_CODES)

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        election: ElectionType = ElectionType.PREFERRED,
    ) -> Results[TopicPartition, None]:
        """Have leaders elected.

        Args:
            partitions: None for all that need it.
            election: who may become the leader.

        Returns:
            By partition, None or why there was no election, such as ELECTION_NOT_NEEDED.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: leaders may be elected.
        """
        election = ElectionType(election)
        wanted = None if partitions is None else by_topic(items(partitions, TopicPartition))

        def elected(answer: ElectLeadersResponse) -> Results[TopicPartition, None]:
            check(answer.error_code, "the election of leaders")
            results: Results[TopicPartition, None] = Results()
            for topic in answer.replica_election_results:
                for each in topic.partition_result:
                    key = TopicPartition(topic.topic, each.partition_id)
                    results[key] = failure(each.error_code, str(key), each.error_message)
            return results

        body = ElectLeadersRequest(
            election_type=election,
            topic_partitions=None
            if wanted is None
            else [
                TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in wanted.items()
            ],
            timeout_ms=self._calls.timeout_ms,
        )
        return await self._calls.ask_controller(body, elected, version_min=min(election, 1))

    async def alter_partition_reassignments(
        self, partitions: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Results[TopicPartition, None]:
        """Move partitions to other brokers.

        Args:
            partitions: the brokers that are to have each, the preferred leader first; None ends a
                move that is under way.

        Returns:
            By partition, None when the move has begun, or why it has not.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: partitions may be moved.
        """
        partitions = mapping(partitions, TopicPartition, Sequence, type(None))

        async def ask(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, TrionetError | None]:
            answer: AlterPartitionReassignmentsResponse = await self._calls.client.request(
                node,
                AlterPartitionReassignmentsRequest(
                    timeout_ms=self._calls.timeout_ms,
                    topics=[
                        ReassignableTopic(
                            name=topic,
                            partitions=[
                                _reassignable(n, partitions[TopicPartition(topic, n)])
                                for n in numbers
                            ],
                        )
                        for topic, numbers in by_topic(keys).items()
                    ],
                ),
            )
            check(answer.error_code, "the reassignment", answer.error_message)
            found: dict[TopicPartition, TrionetError | None] = {}
            for topic in answer.responses:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    found[key] = failure(each.error_code, str(key), each.error_message)
            return found

        return await self._calls.each(partitions, self._calls.at_controller, ask, CONTROLLER_CODES)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The partitions that are being moved.

        Args:
            partitions: of these only; None for all.

        Raises:
            TrionetError: the request failed.
        """

        def listed(
            answer: ListPartitionReassignmentsResponse,
        ) -> dict[TopicPartition, Reassignment]:
            check(answer.error_code, "the list of reassignments", answer.error_message)
            return {
                TopicPartition(topic.name, each.partition_index): Reassignment(
                    tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        body = ListPartitionReassignmentsRequest(
            timeout_ms=self._calls.timeout_ms,
            topics=None
            if partitions is None
            else [
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(items(partitions, TopicPartition)).items()
            ],
        )
        return await self._calls.ask_controller(body, listed)


def _version_of(spec: OffsetSpec | int) -> int:
    """The oldest version of ListOffsets that can be asked for an offset.

    Raises:
        ValueError: it is negative, and none of the specs.
    """
    return _VERSIONS.get(OffsetSpec(spec), 1) if spec < 0 else 1


def _listed(topic: str, partition: ListOffsetsPartitionResponse) -> ListedOffset | TrionetError:
    if partition.error_code:
        return api_error(
            partition.error_code, str(TopicPartition(topic, partition.partition_index))
        )
    offset = None if partition.offset < 0 else partition.offset
    return ListedOffset(offset, partition.timestamp, partition.leader_epoch)


def _reassignable(number: int, brokers: Sequence[int] | None) -> ReassignablePartition:
    return ReassignablePartition(
        partition_index=number, replicas=None if brokers is None else list(brokers)
    )
