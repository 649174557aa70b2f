"""Where share groups begin to read (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from ....errors import TrionetError
from ....protocol.messages import alter_share_group_offsets as altering
from ....protocol.messages import delete_share_group_offsets as deleting
from ....protocol.messages import describe_share_group_offsets as describing
from ..._node import Node
from ..._topic_partition import TopicPartition
from ..calls._argument_checks import mapping, names
from ..calls._calls import Place
from ..calls._conversions import AdminCalls, by_topic, check, failure, partitions_by_group
from ..calls._nodes import COORDINATOR_CODES
from ..calls._results import Results


@attrs.frozen
class ShareOffset:
    """Where a share group begins to read a partition.

    Attributes:
        offset: everything before it is finished.
        leader_epoch: of the record there; -1 where it is not known.
        lag: how many records are not finished yet; None where it is not told.
    """

    offset: int
    leader_epoch: int
    lag: int | None


ShareOffsets = Results[TopicPartition, ShareOffset | None]
"""By partition, where the group begins, None where nothing was read yet, or why it is not known."""


class ShareGroupOffsetCalls(AdminCalls):
    """Calls about the starting points of share groups."""

    async def list_share_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str]
    ) -> Results[str, ShareOffsets]:
        """Read where share groups begin.

        Args:
            groups: by name the partitions, None for all that it reads; or names alone.

        Returns:
            By name, its offsets or why they are not known.

        Raises:
            TrionetError: the request as a whole failed.
        """
        wanted = partitions_by_group(groups)

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, ShareOffsets | TrionetError]:
            answer: describing.DescribeShareGroupOffsetsResponse = await self._calls.client.request(
                node,
                describing.DescribeShareGroupOffsetsRequest(
                    groups=[_asked(key, wanted[key]) for key in keys]
                ),
            )
            return {
                each.group_id: failure(
                    each.error_code, f"group {each.group_id}", each.error_message
                )
                or _offsets(each)
                for each in answer.groups
            }

        return await self._calls.each(wanted, self._calls.at_groups, ask, COORDINATOR_CODES)

    async def alter_share_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int]
    ) -> Results[TopicPartition, None]:
        """Let a share group without members begin elsewhere.

        Args:
            group: its name.
            offsets: where, by partition.

        Returns:
            By partition, None or why not.

        Raises:
            ApiError: of the group as a whole, such as NON_EMPTY_GROUP.
            TrionetError: the request failed.

        Cancellation: the offsets may be changed.
        """
        offsets = mapping(offsets, TopicPartition, int)

        async def ask(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, TrionetError | None]:
            answer: altering.AlterShareGroupOffsetsResponse = await self._calls.client.request(
                node,
                altering.AlterShareGroupOffsetsRequest(
                    group_id=group,
                    topics=[
                        altering.AlterShareGroupOffsetsRequestTopic(
                            topic_name=topic,
                            partitions=[
                                altering.AlterShareGroupOffsetsRequestPartition(
                                    partition_index=n,
                                    start_offset=offsets[TopicPartition(topic, n)],
                                )
                                for n in numbers
                            ],
                        )
                        for topic, numbers in by_topic(keys).items()
                    ],
                ),
            )
            check(answer.error_code, f"group {group}", answer.error_message)
            found: dict[TopicPartition, TrionetError | None] = {}
            for topic in answer.responses:
                for each in topic.partitions:
                    key = TopicPartition(topic.topic_name, each.partition_index)
                    found[key] = failure(each.error_code, str(key), each.error_message)
            return found

        place: Place[TopicPartition] = self._calls.at_group(group)
        return await self._calls.each(offsets, place, ask, COORDINATOR_CODES)

    async def delete_share_group_offsets(
        self, group: str, topics: Iterable[str]
    ) -> Results[str, None]:
        """Make a share group without members forget topics.

        Args:
            group: its name.
            topics: which.

        Returns:
            By topic, None or why not.

        Raises:
            ApiError: of the group as a whole, such as NON_EMPTY_GROUP.
            TrionetError: the request failed.

        Cancellation: the offsets may be deleted.
        """

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            answer: deleting.DeleteShareGroupOffsetsResponse = await self._calls.client.request(
                node,
                deleting.DeleteShareGroupOffsetsRequest(
                    group_id=group,
                    topics=[
                        deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=key) for key in keys
                    ],
                ),
            )
            check(answer.error_code, f"group {group}", answer.error_message)
            return {
                each.topic_name: failure(
                    each.error_code, f"topic {each.topic_name}", each.error_message
                )
                for each in answer.responses
            }

        place: Place[str] = self._calls.at_group(group)
        return await self._calls.each(names(topics), place, ask, COORDINATOR_CODES)


def _asked(
    group: str, partitions: Iterable[TopicPartition] | None
) -> describing.DescribeShareGroupOffsetsRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            describing.DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    return describing.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)


def _offsets(group: describing.DescribeShareGroupOffsetsResponseGroup) -> ShareOffsets:
    found: ShareOffsets = Results()
    for topic in group.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.topic_name, each.partition_index)
            error = failure(each.error_code, str(key), each.error_message)
            found[key] = error or _offset(each)
    return found


def _offset(
    partition: describing.DescribeShareGroupOffsetsResponsePartition,
) -> ShareOffset | None:
    if partition.start_offset < 0:
        return None
    lag = None if partition.lag < 0 else partition.lag
    return ShareOffset(partition.start_offset, partition.leader_epoch, lag)
