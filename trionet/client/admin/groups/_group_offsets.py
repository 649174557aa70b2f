"""The committed offsets of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
import trio

from ....errors import TrionetError, UnsupportedVersionError
from ....protocol import error_codes
from ....protocol.messages import offset_commit, offset_delete, offset_fetch
from ..._api_errors import api_error
from ..._argument_checks import items, mapping
from ..._node import Node
from ..._topic_partition import TopicPartition
from ..calls._calls import AdminCalls, Lookup, Results
from ..calls._conversions import by_topic, check, failure, failures, partitions_by_group
from ..calls._nodes import COORDINATOR_CODES

_MANY_GROUPS_VERSION: Final = 8  # KIP-709
# Later versions use topic ids instead of names.
_NAMES_VERSION_MAX: Final = 9
_RETRIED: Final = frozenset({*COORDINATOR_CODES, error_codes.UNSTABLE_OFFSET_COMMIT})


@attrs.frozen
class CommittedOffset:
    """A committed offset.

    Attributes:
        offset: the offset of the next record to read.
        metadata: the metadata that was committed with it.
        leader_epoch: the leader epoch of the preceding record; -1 if it is not known.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Committed = Results[TopicPartition, CommittedOffset | None]
"""The committed offset, None, or the error by partition."""

_Partition = offset_fetch.OffsetFetchResponsePartitions | offset_fetch.OffsetFetchResponsePartition
_Topic = offset_fetch.OffsetFetchResponseTopics | offset_fetch.OffsetFetchResponseTopic


class GroupOffsetCalls(AdminCalls):
    """Calls for the committed offsets of groups."""

    async def list_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str],
        *,
        require_stable: bool = False,
    ) -> Results[str, Committed]:
        """Return the committed offsets of groups.

        Args:
            groups: partitions by group id, None for all committed ones; or group ids.
            require_stable: whether to wait for transactions with pending offset commits (KIP-447).

        Returns:
            The offsets or the error by group id.

        Raises:
            TrionetError: the request as a whole failed.
        """
        wanted = partitions_by_group(groups)

        async def send(node: Node, keys: Sequence[str]) -> dict[str, Committed | TrionetError]:
            await trio.lowlevel.checkpoint()
            try:
                return await self._fetch_many(
                    node, {key: wanted[key] for key in keys}, require_stable
                )
            except UnsupportedVersionError:
                return {
                    key: await self._fetch(node, key, wanted[key], require_stable) for key in keys
                }

        return await self._calls.for_each(wanted, self._calls.at_groups, send, _RETRIED)

    async def _fetch_many(
        self,
        node: Node,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        require_stable: bool,
    ) -> dict[str, Committed | TrionetError]:
        response: offset_fetch.OffsetFetchResponse = await self._calls.client.request(
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
            for each in response.groups
        }

    async def _fetch(
        self,
        node: Node,
        group: str,
        partitions: Iterable[TopicPartition] | None,
        require_stable: bool,
    ) -> Committed | TrionetError:
        response: offset_fetch.OffsetFetchResponse = await self._calls.client.request(
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
        return failure(response.error_code, f"group {group}") or _committed(response.topics)

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
    ) -> Results[TopicPartition, None]:
        """Commit offsets for a group without members.

        Args:
            group: the group id; the group is created if it does not exist.
            offsets: the offset of the next record to read by partition.

        Returns:
            None or the error by partition, such as UNKNOWN_MEMBER_ID if the group has members.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: the offsets may have been committed.
        """
        offsets = mapping(offsets, TopicPartition, int, CommittedOffset)

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, TrionetError | None]:
            response: offset_commit.OffsetCommitResponse = await self._calls.client.request(
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
            return failures(response.topics)

        lookup: Lookup[TopicPartition] = self._calls.at_group(group)
        return await self._calls.for_each(offsets, lookup, send, COORDINATOR_CODES)

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, None]:
        """Delete committed offsets of a group (KIP-496).

        Args:
            group: the group id.
            partitions: partitions of topics to which no member subscribes.

        Returns:
            None or the error by partition, such as GROUP_SUBSCRIBED_TO_TOPIC.

        Raises:
            ApiError: an error of the group as a whole, such as GROUP_ID_NOT_FOUND.
            TrionetError: the request failed.

        Cancellation: the offsets may have been deleted.
        """

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, TrionetError | None]:
            response: offset_delete.OffsetDeleteResponse = await self._calls.client.request(
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
            check(response.error_code, f"group {group}")
            return failures(response.topics)

        lookup: Lookup[TopicPartition] = self._calls.at_group(group)
        return await self._calls.for_each(
            items(partitions, TopicPartition), lookup, send, COORDINATOR_CODES
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
