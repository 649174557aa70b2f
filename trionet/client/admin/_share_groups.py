"""Admin calls for share groups: description and start offsets (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from ...protocol.messages import alter_share_group_offsets as altering
from ...protocol.messages import delete_share_group_offsets as deleting
from ...protocol.messages import describe_share_group_offsets as describing_offsets
from ...protocol.messages import share_group_describe as share_groups
from .._argument_checks import mapping, names
from .._topic_partition import TopicPartition, by_topic
from ..network._cluster import Node
from ._calls import AdminCalls, Outcomes, Results, SendTo
from ._conversions import by_partition, check, failure, failures, known, partitions_by_group
from ._group_descriptions import GroupDescription, describing, of_share_group


@attrs.frozen
class ShareOffset:
    """The start offset of a share group in a partition.

    Attributes:
        offset: the share-partition start offset; earlier records are no longer delivered.
        leader_epoch: the partition's leader epoch; -1 if unknown.
        lag: the number of records whose delivery is not yet complete; None if not reported.
    """

    offset: int
    leader_epoch: int
    lag: int | None


ShareOffsets = Results[TopicPartition, ShareOffset | None]
"""The start offset of each partition, None if the group has not read it, or the error."""


class ShareGroupCalls(AdminCalls):
    """Admin calls for share groups and their start offsets."""

    async def describe(
        self, groups: Iterable[str], *, include_operations: bool = False
    ) -> Results[str, GroupDescription]:
        """Describe share groups (KIP-932).

        Args:
            groups: group ids.
            include_operations: whether to include the caller's authorized operations.

        Returns:
            For each group id, the group or the error.

        Raises:
            TrionetError: the request as a whole failed.
        """
        send: SendTo[str, GroupDescription] = describing(
            self._calls,
            share_groups.ShareGroupDescribeRequest,
            of_share_group,
            include_operations=include_operations,
        )
        return await self._calls.for_each(names(groups), self._nodes.at_groups, send)

    async def list_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str]
    ) -> Results[str, ShareOffsets]:
        """Return the start offsets of share groups.

        Args:
            groups: the partitions of each group id, or None for all partitions; or just the group
                ids.

        Returns:
            For each group id, the offsets or the error.

        Raises:
            TrionetError: the request as a whole failed.
        """
        wanted = partitions_by_group(groups)

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, ShareOffsets]:
            body = describing_offsets.DescribeShareGroupOffsetsRequest(
                groups=[_wanted(key, wanted[key]) for key in keys]
            )
            response: describing_offsets.DescribeShareGroupOffsetsResponse = await self._request(
                node, body
            )
            return {
                each.group_id: failure(each, f"group {each.group_id}")
                or ShareOffsets(by_partition(each.topics, _offset))
                for each in response.groups
            }

        return await self._calls.for_each(wanted, self._nodes.at_groups, send)

    async def alter_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int]
    ) -> Results[TopicPartition, None]:
        """Set the start offsets of a share group without members.

        Args:
            group: the group id.
            offsets: the new start offset of each partition.

        Returns:
            For each partition, None on success or the error.

        Raises:
            ApiError: an error for the group as a whole, such as NON_EMPTY_GROUP.
            TrionetError: the request failed.

        Cancellation: the offsets may have been set.
        """
        offsets = mapping(offsets, TopicPartition, int)

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> Outcomes[TopicPartition, None]:
            body = altering.AlterShareGroupOffsetsRequest(
                group_id=group,
                topics=[
                    altering.AlterShareGroupOffsetsRequestTopic(
                        topic_name=topic,
                        partitions=[
                            altering.AlterShareGroupOffsetsRequestPartition(
                                partition_index=n, start_offset=offsets[TopicPartition(topic, n)]
                            )
                            for n in numbers
                        ],
                    )
                    for topic, numbers in by_topic(keys).items()
                ],
            )
            response: altering.AlterShareGroupOffsetsResponse = await self._request(node, body)
            check(response, f"group {group}")
            return failures(response.responses)

        return await self._calls.for_each(offsets, self._nodes.at_group(group), send)

    async def delete_offsets(self, group: str, topics: Iterable[str]) -> Results[str, None]:
        """Delete the start offsets of a share group without members for some topics.

        Args:
            group: the group id.
            topics: topic names.

        Returns:
            For each topic, None on success or the error.

        Raises:
            ApiError: an error for the group as a whole, such as NON_EMPTY_GROUP.
            TrionetError: the request failed.

        Cancellation: the offsets may have been deleted.
        """

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            body = deleting.DeleteShareGroupOffsetsRequest(
                group_id=group,
                topics=[
                    deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=key) for key in keys
                ],
            )
            response: deleting.DeleteShareGroupOffsetsResponse = await self._request(node, body)
            check(response, f"group {group}")
            return {
                each.topic_name: failure(each, f"topic {each.topic_name}")
                for each in response.responses
            }

        return await self._calls.for_each(names(topics), self._nodes.at_group(group), send)


def _wanted(
    group: str, partitions: Iterable[TopicPartition] | None
) -> describing_offsets.DescribeShareGroupOffsetsRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            describing_offsets.DescribeShareGroupOffsetsRequestTopic(
                topic_name=topic, partitions=numbers
            )
            for topic, numbers in by_topic(partitions).items()
        ]
    return describing_offsets.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)


def _offset(
    partition: describing_offsets.DescribeShareGroupOffsetsResponsePartition,
) -> ShareOffset | None:
    if partition.start_offset < 0:
        return None
    return ShareOffset(partition.start_offset, partition.leader_epoch, known(partition.lag))
