"""The committed offsets of groups, and the starting points of share groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
import trio

from ....errors import TrionetError, UnsupportedVersionError
from ....protocol import error_codes
from ....protocol.messages import offset_commit, offset_delete, offset_fetch
from ..._api_errors import api_error
from ..._node import Node
from ..._topic_partition import TopicPartition
from ..calls._argument_checks import items, mapping
from ..calls._calls import Place
from ..calls._conversions import AdminCalls, by_topic, check, failure, failures, partitions_by_group
from ..calls._nodes import COORDINATOR_CODES
from ..calls._results import Results

_MANY_GROUPS_VERSION: Final = 8  # KIP-709
# The next ones name topics by their ids, which an administrator has no reason to look up.
_NAMES_VERSION_MAX: Final = 9
_RETRIED: Final = frozenset({*COORDINATOR_CODES, error_codes.UNSTABLE_OFFSET_COMMIT})


@attrs.frozen
class CommittedOffset:
    """What a group has committed.

    Attributes:
        offset: the next record to be read.
        metadata: what the consumer wrote beside it.
        leader_epoch: of the last record that was read; -1 where it is not known.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Committed = Results[TopicPartition, CommittedOffset | None]
"""By partition, what was committed, None for nothing, or why it is not known."""

_Partition = offset_fetch.OffsetFetchResponsePartitions | offset_fetch.OffsetFetchResponsePartition
_Topic = offset_fetch.OffsetFetchResponseTopics | offset_fetch.OffsetFetchResponseTopic


class GroupOffsetCalls(AdminCalls):
    """Calls about the offsets of groups."""

    async def list_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str],
        *,
        require_stable: bool = False,
    ) -> Results[str, Committed]:
        """Read what groups have committed.

        Args:
            groups: by name the partitions, None for all that it has committed; or names alone.
            require_stable: wait for transactions that may still commit offsets (KIP-447).

        Returns:
            By name, its offsets or why they are not known.

        Raises:
            TrionetError: the request as a whole failed.
        """
        wanted = partitions_by_group(groups)

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, Committed | TrionetError]:
            await trio.lowlevel.checkpoint()
            try:
                return await self._fetch_many(
                    node, {key: wanted[key] for key in keys}, require_stable
                )
            except UnsupportedVersionError:
                return {
                    key: await self._fetch(node, key, wanted[key], require_stable) for key in keys
                }

        return await self._calls.each(wanted, self._calls.at_groups, ask, _RETRIED)

    async def _fetch_many(
        self,
        node: Node,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        require_stable: bool,
    ) -> dict[str, Committed | TrionetError]:
        answer: offset_fetch.OffsetFetchResponse = await self._calls.client.request(
            node,
            offset_fetch.OffsetFetchRequest(
                groups=[
                    offset_fetch.OffsetFetchRequestGroup(
                        group_id=group,
                        topics=None
                        if partitions is None
                        else [
                            offset_fetch.OffsetFetchRequestTopics(
                                name=topic, partition_indexes=each
                            )
                            for topic, each in by_topic(partitions).items()
                        ],
                    )
                    for group, partitions in groups.items()
                ],
                require_stable=require_stable,
            ),
            version_min=_MANY_GROUPS_VERSION,
            version_max=_NAMES_VERSION_MAX,
        )
        return {
            each.group_id: failure(each.error_code, f"group {each.group_id}")
            or _committed(each.topics)
            for each in answer.groups
        }

    async def _fetch(
        self,
        node: Node,
        group: str,
        partitions: Iterable[TopicPartition] | None,
        require_stable: bool,
    ) -> Committed | TrionetError:
        answer: offset_fetch.OffsetFetchResponse = await self._calls.client.request(
            node,
            offset_fetch.OffsetFetchRequest(
                group_id=group,
                topics=None
                if partitions is None
                else [
                    offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=each)
                    for topic, each in by_topic(partitions).items()
                ],
                require_stable=require_stable,
            ),
            version_min=7 if require_stable else 2,
            version_max=_MANY_GROUPS_VERSION - 1,
        )
        return failure(answer.error_code, f"group {group}") or _committed(answer.topics)

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
    ) -> Results[TopicPartition, None]:
        """Commit offsets in place of a group that has no members.

        Args:
            group: its name; a group that does not exist is made.
            offsets: the next record that is to be read of each partition.

        Returns:
            By partition, None or why it was not committed, such as UNKNOWN_MEMBER_ID while the
            group has members.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: the offsets may be committed.
        """
        offsets = mapping(offsets, TopicPartition, int, CommittedOffset)

        async def ask(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, TrionetError | None]:
            answer: offset_commit.OffsetCommitResponse = await self._calls.client.request(
                node,
                offset_commit.OffsetCommitRequest(
                    group_id=group,
                    topics=[
                        offset_commit.OffsetCommitRequestTopic(
                            name=topic,
                            partitions=[
                                _commit(n, offsets[TopicPartition(topic, n)]) for n in each
                            ],
                        )
                        for topic, each in by_topic(keys).items()
                    ],
                ),
                version_min=2,
                version_max=_NAMES_VERSION_MAX,
            )
            return failures(answer.topics)

        place: Place[TopicPartition] = self._calls.at_group(group)
        return await self._calls.each(offsets, place, ask, COORDINATOR_CODES)

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, None]:
        """Make a group forget what it has committed (KIP-496).

        Args:
            group: its name.
            partitions: of topics that no member subscribes to.

        Returns:
            By partition, None or why not, such as GROUP_SUBSCRIBED_TO_TOPIC.

        Raises:
            ApiError: of the group as a whole, such as GROUP_ID_NOT_FOUND.
            TrionetError: the request failed.

        Cancellation: the offsets may be deleted.
        """

        async def ask(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, TrionetError | None]:
            answer: offset_delete.OffsetDeleteResponse = await self._calls.client.request(
                node,
                offset_delete.OffsetDeleteRequest(
                    group_id=group,
                    topics=[
                        offset_delete.OffsetDeleteRequestTopic(
                            name=topic,
                            partitions=[
                                offset_delete.OffsetDeleteRequestPartition(partition_index=n)
                                for n in numbers
                            ],
                        )
                        for topic, numbers in by_topic(keys).items()
                    ],
                ),
            )
            check(answer.error_code, f"group {group}")
            return failures(answer.topics)

        place: Place[TopicPartition] = self._calls.at_group(group)
        return await self._calls.each(
            items(partitions, TopicPartition), place, ask, COORDINATOR_CODES
        )


def _committed(topics: Iterable[_Topic]) -> Committed | TrionetError:
    found: Committed = Results()
    for topic in topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            if each.error_code == error_codes.UNSTABLE_OFFSET_COMMIT:
                return api_error(each.error_code, str(key))
            found[key] = failure(each.error_code, str(key)) or _offset(each)
    return found


def _offset(partition: _Partition) -> CommittedOffset | None:
    if partition.committed_offset < 0:
        return None
    return CommittedOffset(
        partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
    )


def _commit(number: int, to: CommittedOffset | int) -> offset_commit.OffsetCommitRequestPartition:
    offset = CommittedOffset(to) if isinstance(to, int) else to
    return offset_commit.OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )
