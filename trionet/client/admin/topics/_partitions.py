"""Partitions: offsets, record deletion, leader elections and reassignments."""

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
from ..._argument_checks import items, mapping
from ..._topic_partition import TopicPartition, by_topic
from ...network._cluster import Node
from ..calls._calls import AdminCalls, Results
from ..calls._conversions import check, failure
from ..calls._nodes import CONTROLLER_CODES, LEADER_CODES

HIGH_WATERMARK: Final = -1
"""The offset argument that deletes all records up to the high watermark."""

_CONSUMER: Final = -1


class OffsetSpec(IntEnum):
    """A special offset of a partition, as opposed to an offset looked up by time."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """The record with the largest timestamp (KIP-734)."""

    EARLIEST_LOCAL = -4
    """The first record on the broker's own disk (KIP-405)."""

    LATEST_TIERED = -5
    """The last record in remote storage (KIP-1005)."""

    EARLIEST_PENDING_UPLOAD = -6
    """The first record not yet in remote storage (KIP-1023)."""


_VERSIONS: Final = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


class ElectionType(IntEnum):
    """Which replicas may become the leader."""

    PREFERRED = 0
    """The first replica, if it is in sync."""

    UNCLEAN = 1
    """Any replica, if none is in sync; records may be lost."""


@attrs.frozen
class ListedOffset:
    """An offset of a partition.

    Attributes:
        offset: the offset; None if there is no such record.
        timestamp: the record's timestamp, in ms since the epoch; -1 if the broker does not report
            it.
        leader_epoch: the record's leader epoch; -1 if unknown.
    """

    offset: int | None
    timestamp: int
    leader_epoch: int


@attrs.frozen
class Reassignment:
    """An ongoing reassignment of a partition.

    Attributes:
        replicas: the broker ids of all replicas, including those being added or removed.
        adding: the broker ids of replicas being added.
        removing: the broker ids of replicas being removed.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionCalls(AdminCalls):
    """Admin calls for partitions."""

    async def list_offsets(
        self, partitions: Mapping[TopicPartition, OffsetSpec | int], *, read_committed: bool = False
    ) -> Results[TopicPartition, ListedOffset]:
        """Look up offsets.

        Args:
            partitions: for each partition, the offset to look up: a spec or, for the first record
                at or after a time, that time in ms since the epoch.
            read_committed: whether to look only at records before the first open transaction.

        Returns:
            For each partition, the offset or the error.

        Raises:
            TypeError, ValueError: a spec is invalid.
            TrionetError: the request as a whole failed.
        """
        partitions = mapping(partitions, TopicPartition, OffsetSpec, int)
        needed = {
            key: max(2 if read_committed else 1, _version_of(spec))
            for key, spec in partitions.items()
        }

        async def send(
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
                response: ListOffsetsResponse = await self._calls.client.request(
                    node, body, version_min=version
                )
            except UnsupportedVersionError as error:
                # The request was not sent. Retry without the specs that need a newer version
                # (Kafka: ListOffsetsHandler.handleUnsupportedVersionException).
                others = [key for key in keys if needed[key] < version]
                if not others:
                    raise
                return {**dict.fromkeys(keys, error), **await send(node, others)}
            return {
                TopicPartition(topic.name, each.partition_index): _listed(topic.name, each)
                for topic in response.topics
                for each in topic.partitions
            }

        return await self._calls.for_each(partitions, self._calls.at_leaders, send, LEADER_CODES)

    async def delete_records(
        self, partitions: Mapping[TopicPartition, int]
    ) -> Results[TopicPartition, int]:
        """Delete all records before an offset in each partition.

        Args:
            partitions: for each partition, the first offset to keep; :data:`HIGH_WATERMARK` to
                delete all records.

        Returns:
            For each partition, the new first offset or the error.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: records may have been deleted.
        """
        partitions = mapping(partitions, TopicPartition, int)

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, int | TrionetError]:
            response: DeleteRecordsResponse = await self._calls.client.request(
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
            for topic in response.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    found[key] = failure(each.error_code, str(key)) or each.low_watermark
            return found

        return await self._calls.for_each(partitions, self._calls.at_leaders, send, LEADER_CODES)

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        election: ElectionType = ElectionType.PREFERRED,
    ) -> Results[TopicPartition, None]:
        """Trigger leader elections.

        Args:
            partitions: the partitions; None for all that need an election.
            election: which replicas may become the leader.

        Returns:
            For each partition, None on success or the error, such as ELECTION_NOT_NEEDED.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: leaders may have been elected.
        """
        election = ElectionType(election)
        wanted = None if partitions is None else by_topic(items(partitions, TopicPartition))

        def elected(response: ElectLeadersResponse) -> Results[TopicPartition, None]:
            check(response.error_code, "the leader election")
            results: Results[TopicPartition, None] = Results()
            for topic in response.replica_election_results:
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
        return await self._calls.call_controller(body, elected, version_min=min(election, 1))

    async def alter_reassignments(
        self, partitions: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Results[TopicPartition, None]:
        """Reassign partitions to other brokers.

        Args:
            partitions: for each partition, the broker ids of the new replicas, with the preferred
                leader first; None to cancel an ongoing reassignment.

        Returns:
            For each partition, None if the reassignment has started, or the error.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: reassignments may have started.
        """
        partitions = mapping(partitions, TopicPartition, Sequence, type(None))

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, TrionetError | None]:
            response: AlterPartitionReassignmentsResponse = await self._calls.client.request(
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
            check(response.error_code, "the reassignment", response.error_message)
            found: dict[TopicPartition, TrionetError | None] = {}
            for topic in response.responses:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    found[key] = failure(each.error_code, str(key), each.error_message)
            return found

        return await self._calls.for_each(
            partitions, self._calls.at_controller, send, CONTROLLER_CODES
        )

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return the ongoing reassignments, keyed by partition.

        Args:
            partitions: only these partitions; None for all.

        Raises:
            TrionetError: the request failed.
        """

        def listed(
            response: ListPartitionReassignmentsResponse,
        ) -> dict[TopicPartition, Reassignment]:
            check(response.error_code, "the list of reassignments", response.error_message)
            return {
                TopicPartition(topic.name, each.partition_index): Reassignment(
                    tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
                )
                for topic in response.topics
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
        return await self._calls.call_controller(body, listed)


def _version_of(spec: OffsetSpec | int) -> int:
    """Return the oldest version of ListOffsets that supports a spec.

    Raises:
        ValueError: the spec is negative, and not a value of :class:`OffsetSpec`.
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
