"""Partitions: offsets, record deletion, leader elections and reassignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Final

import attrs

from ...errors import UnsupportedVersionError
from ...protocol.messages import alter_partition_reassignments as reassignments
from ...protocol.messages import (
    delete_records,
    elect_leaders,
    list_offsets,
    list_partition_reassignments,
)
from .._argument_checks import items, mapping
from .._topic_partition import TopicPartition, by_topic
from ..network._cluster import Node
from ._calls import AdminCalls, Outcomes, Results
from ._conversions import by_partition, check, failure, failures, known, topics_of

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
        ) -> Outcomes[TopicPartition, ListedOffset]:
            body = list_offsets.ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=int(read_committed),
                topics=topics_of(
                    keys,
                    list_offsets.ListOffsetsTopic,
                    lambda key: list_offsets.ListOffsetsPartition(
                        partition_index=key.partition, timestamp=partitions[key]
                    ),
                ),
                timeout_ms=self._calls.timeout_ms,
            )
            version = max(needed[key] for key in keys)
            try:
                response: list_offsets.ListOffsetsResponse = await self._request(
                    node, body, version_min=version
                )
            except UnsupportedVersionError as error:
                # The request was not sent. Retry without the specs that need a newer version
                # (Kafka: ListOffsetsHandler.handleUnsupportedVersionException).
                others = [key for key in keys if needed[key] < version]
                if not others:
                    raise
                return {**dict.fromkeys(keys, error), **await send(node, others)}
            return by_partition(
                response.topics,
                lambda each: ListedOffset(known(each.offset), each.timestamp, each.leader_epoch),
            )

        return await self._calls.for_each(partitions, self._nodes.at_leaders, send)

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

        async def send(node: Node, keys: Sequence[TopicPartition]) -> Outcomes[TopicPartition, int]:
            body = delete_records.DeleteRecordsRequest(
                topics=topics_of(
                    keys,
                    delete_records.DeleteRecordsTopic,
                    lambda key: delete_records.DeleteRecordsPartition(
                        partition_index=key.partition, offset=partitions[key]
                    ),
                ),
                timeout_ms=self._calls.timeout_ms,
            )
            response: delete_records.DeleteRecordsResponse = await self._request(node, body)
            return by_partition(response.topics, attrgetter("low_watermark"))

        return await self._calls.for_each(partitions, self._nodes.at_leaders, send)

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
        wanted = None
        if partitions is not None:
            wanted = [
                elect_leaders.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(items(partitions, TopicPartition)).items()
            ]
        body = elect_leaders.ElectLeadersRequest(
            election_type=election, topic_partitions=wanted, timeout_ms=self._calls.timeout_ms
        )
        response: elect_leaders.ElectLeadersResponse = await self._calls.call_controller(
            body, "the leader election", version_min=min(election, 1)
        )
        results: Results[TopicPartition, None] = Results()
        for topic in response.replica_election_results:
            for each in topic.partition_result:
                key = TopicPartition(topic.topic, each.partition_id)
                results[key] = failure(each, key)
        return results

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

        def reassignable(key: TopicPartition) -> reassignments.ReassignablePartition:
            brokers = partitions[key]
            return reassignments.ReassignablePartition(
                partition_index=key.partition, replicas=None if brokers is None else list(brokers)
            )

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> Outcomes[TopicPartition, None]:
            body = reassignments.AlterPartitionReassignmentsRequest(
                timeout_ms=self._calls.timeout_ms,
                topics=topics_of(keys, reassignments.ReassignableTopic, reassignable),
            )
            response: reassignments.AlterPartitionReassignmentsResponse = await self._request(
                node, body
            )
            check(response, "the reassignment")
            return failures(response.responses)

        return await self._calls.for_each(partitions, self._nodes.at_controller, send)

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return the ongoing reassignments, keyed by partition.

        Args:
            partitions: only these partitions; None for all.

        Raises:
            TrionetError: the request failed.
        """
        wanted = None
        if partitions is not None:
            wanted = [
                list_partition_reassignments.ListPartitionReassignmentsTopics(
                    name=topic, partition_indexes=numbers
                )
                for topic, numbers in by_topic(items(partitions, TopicPartition)).items()
            ]
        body = list_partition_reassignments.ListPartitionReassignmentsRequest(
            timeout_ms=self._calls.timeout_ms, topics=wanted
        )
        response: list_partition_reassignments.ListPartitionReassignmentsResponse = (
            await self._calls.call_controller(body, "the list of reassignments")
        )
        return {
            TopicPartition(topic.name, each.partition_index): Reassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }


def _version_of(spec: OffsetSpec | int) -> int:
    """Return the oldest version of ListOffsets that supports a spec.

    Raises:
        ValueError: the spec is negative, and not a value of :class:`OffsetSpec`.
    """
    return _VERSIONS.get(OffsetSpec(spec), 1) if spec < 0 else 1
