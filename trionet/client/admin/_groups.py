"""Admin calls for groups: listing, description, deletion, members and committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import attrs
import trio

from ...errors import ApiError, TrionetError, UnsupportedVersionError
from ...protocol import error_codes
from ...protocol.messages import consumer_group_describe as consumer_groups
from ...protocol.messages import describe_groups as classic_groups
from ...protocol.messages import offset_commit, offset_delete, offset_fetch
from ...protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ...protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ...protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from .._argument_checks import items, mapping, names
from .._topic_partition import TopicPartition, by_topic
from ..network._cluster import Node
from ._calls import AdminCalls, Outcomes, Results, SendTo
from ._conversions import by_partition, check, failure, failures, partitions_by_group, topics_of
from ._group_descriptions import GroupDescription, describing, of_classic_group, of_consumer_group

T = TypeVar("T")

_BY_MEMBERS_VERSION: Final = 3  # KIP-345
_MANY_GROUPS_VERSION: Final = 8  # KIP-709
# Later versions use topic ids instead of names.
_NAMES_VERSION_MAX: Final = 9
_RETRIED: Final = frozenset({error_codes.UNSTABLE_OFFSET_COMMIT})


@attrs.frozen
class GroupListing:
    """A group in a listing.

    Attributes:
        id: the group id.
        type: ``classic``, ``consumer``, ``share`` or ``streams``; empty if not reported.
        state: Kafka's name of the state, such as ``Stable``; empty if not reported.
        protocol_type: the members' protocol, such as ``consumer``.
    """

    id: str
    type: str
    state: str
    protocol_type: str


@attrs.frozen
class CommittedOffset:
    """A committed offset.

    Attributes:
        offset: the offset of the next record to read.
        metadata: the metadata committed with the offset.
        leader_epoch: the leader epoch of the preceding record; -1 if unknown.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Committed = Results[TopicPartition, CommittedOffset | None]
"""The committed offset of each partition, None if it has none, or the error."""


class GroupCalls(AdminCalls):
    """Admin calls for groups."""

    async def list(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> dict[str, GroupListing]:
        """Return the groups that the caller may describe, keyed by id.

        Args:
            states: only groups in these states, such as ``Empty``; empty for all.
            types: only groups of these types, such as ``share``; empty for all.

        Raises:
            TrionetError: a broker could not be reached, so the listing would be incomplete.
        """

        def listed(response: ListGroupsResponse, node: Node) -> dict[str, GroupListing]:
            check(response, f"the groups of {node}")
            return {
                each.group_id: GroupListing(
                    each.group_id, each.group_type, each.group_state, each.protocol_type
                )
                for each in response.groups
            }

        body = ListGroupsRequest(states_filter=names(states), types_filter=names(types))
        version_min = 5 if body.types_filter else 4 if body.states_filter else 0
        return await self._calls.list_everywhere(body, listed, version_min=version_min)

    async def describe(
        self, groups: Iterable[str], *, include_operations: bool = False
    ) -> Results[str, GroupDescription]:
        """Describe classic and consumer groups (KIP-848).

        Args:
            groups: group ids.
            include_operations: whether to include the caller's authorized operations.

        Returns:
            For each group id, the group or the error, such as GROUP_ID_NOT_FOUND.

        Raises:
            TrionetError: the request as a whole failed.
        """

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, GroupDescription]:
            found = await self._consumer_groups(node, keys, include_operations)
            left = [key for key in keys if key not in found]
            if left:
                found |= await self._classic_groups(node, left, include_operations)
            return found

        return await self._calls.for_each(names(groups), self._nodes.at_groups, send)

    async def _consumer_groups(
        self, node: Node, keys: Sequence[str], include_operations: bool
    ) -> Outcomes[str, GroupDescription]:
        """Describe the consumer groups; omit groups of other types."""
        send: SendTo[str, GroupDescription] = describing(
            self._calls,
            consumer_groups.ConsumerGroupDescribeRequest,
            of_consumer_group,
            include_operations=include_operations,
        )
        await trio.lowlevel.checkpoint()
        try:
            found = await send(node, keys)
        except UnsupportedVersionError:
            return {}
        others = (error_codes.GROUP_ID_NOT_FOUND, error_codes.UNSUPPORTED_VERSION)
        return {
            key: each
            for key, each in found.items()
            if not (isinstance(each, ApiError) and each.error_code in others)
        }

    async def _classic_groups(
        self, node: Node, keys: Sequence[str], include_operations: bool
    ) -> Outcomes[str, GroupDescription]:
        body = classic_groups.DescribeGroupsRequest(
            groups=list(keys), include_authorized_operations=include_operations
        )
        response: classic_groups.DescribeGroupsResponse = await self._request(
            node, body, version_min=3 if include_operations else 0
        )
        return {each.group_id: of_classic_group(each, node) for each in response.groups}

    async def delete(self, groups: Iterable[str]) -> Results[str, None]:
        """Delete groups of any type, along with their offsets; the groups must have no members.

        Args:
            groups: group ids.

        Returns:
            For each group id, None on success or the error, such as NON_EMPTY_GROUP.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: groups may have been deleted.
        """

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            body = DeleteGroupsRequest(groups_names=list(keys))
            response: DeleteGroupsResponse = await self._request(node, body)
            return {
                each.group_id: failure(each, f"group {each.group_id}") for each in response.results
            }

        return await self._calls.for_each(names(groups), self._nodes.at_groups, send)

    async def remove_members(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str = "an administrator removed the member",
    ) -> Results[str, None]:
        """Remove members from a classic group, which then rebalances immediately.

        A removed member that is still running rejoins the group.

        Args:
            group: the group id.
            instance_ids: the ``group.instance.id`` of static members; None for all members.
            reason: the reason, which appears in the broker's log.

        Returns:
            For each instance id, or the member id of a dynamic member, None on success or the
            error.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: members may have been removed.
        """
        if instance_ids is not None:
            members = {each: MemberIdentity(group_instance_id=each) for each in names(instance_ids)}
        else:
            described = (await self.describe([group])).checked()[group]
            members = {
                each.instance_id or each.id: MemberIdentity(
                    member_id="" if each.instance_id else each.id,
                    group_instance_id=each.instance_id,
                )
                for each in described.members
            }
        for member in members.values():
            member.reason = reason

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            body = LeaveGroupRequest(group_id=group, members=[members[key] for key in keys])
            response: LeaveGroupResponse = await self._request(
                node, body, version_min=_BY_MEMBERS_VERSION
            )
            check(response, f"group {group}")
            found: Outcomes[str, None] = {}
            for each in response.members:
                key = each.group_instance_id or each.member_id
                found[key] = failure(each, f"member {key}")
            return found

        return await self._calls.for_each(members, self._nodes.at_group(group), send)

    async def list_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str],
        *,
        require_stable: bool = False,
    ) -> Results[str, Committed]:
        """Return the committed offsets of groups.

        Args:
            groups: the partitions of each group id, or None for all partitions with a committed
                offset; or just the group ids.
            require_stable: whether to wait for transactions with pending offset commits (KIP-447).

        Returns:
            For each group id, the offsets or the error.

        Raises:
            TrionetError: the request as a whole failed.
        """
        wanted = partitions_by_group(groups)

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, Committed]:
            await trio.lowlevel.checkpoint()
            with suppress(UnsupportedVersionError):
                return await self._fetch_many(
                    node, {key: wanted[key] for key in keys}, require_stable
                )
            return {key: await self._fetch(node, key, wanted[key], require_stable) for key in keys}

        place = self._nodes.at_groups
        return await self._calls.for_each(wanted, place, send, retried=_RETRIED)

    async def _fetch_many(
        self,
        node: Node,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        require_stable: bool,
    ) -> Outcomes[str, Committed]:
        body = offset_fetch.OffsetFetchRequest(
            groups=[
                offset_fetch.OffsetFetchRequestGroup(
                    group_id=group,
                    topics=_topics(offset_fetch.OffsetFetchRequestTopics, partitions),
                )
                for group, partitions in groups.items()
            ],
            require_stable=require_stable,
        )
        response: offset_fetch.OffsetFetchResponse = await self._request(
            node, body, version_min=_MANY_GROUPS_VERSION, version_max=_NAMES_VERSION_MAX
        )
        return {
            each.group_id: failure(each, f"group {each.group_id}") or _committed(each.topics)
            for each in response.groups
        }

    async def _fetch(
        self,
        node: Node,
        group: str,
        partitions: Iterable[TopicPartition] | None,
        require_stable: bool,
    ) -> Committed | TrionetError:
        body = offset_fetch.OffsetFetchRequest(
            group_id=group,
            topics=_topics(offset_fetch.OffsetFetchRequestTopic, partitions),
            require_stable=require_stable,
        )
        response: offset_fetch.OffsetFetchResponse = await self._request(
            node,
            body,
            version_min=7 if require_stable else 2,
            version_max=_MANY_GROUPS_VERSION - 1,
        )
        return failure(response, f"group {group}") or _committed(response.topics)

    async def alter_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
    ) -> Results[TopicPartition, None]:
        """Commit offsets for a group without members.

        Args:
            group: the group id; the group is created if it does not exist.
            offsets: for each partition, the offset of the next record to read.

        Returns:
            For each partition, None on success or the error, such as UNKNOWN_MEMBER_ID if the group
            has members.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: the offsets may have been committed.
        """
        offsets = mapping(offsets, TopicPartition, int, CommittedOffset)

        def commit(key: TopicPartition) -> offset_commit.OffsetCommitRequestPartition:
            to = offsets[key]
            offset = CommittedOffset(to) if isinstance(to, int) else to
            return offset_commit.OffsetCommitRequestPartition(
                partition_index=key.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> Outcomes[TopicPartition, None]:
            body = offset_commit.OffsetCommitRequest(
                group_id=group,
                topics=topics_of(keys, offset_commit.OffsetCommitRequestTopic, commit),
            )
            response: offset_commit.OffsetCommitResponse = await self._request(
                node, body, version_min=2, version_max=_NAMES_VERSION_MAX
            )
            return failures(response.topics)

        return await self._calls.for_each(offsets, self._nodes.at_group(group), send)

    async def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, None]:
        """Delete the offsets that a group has committed for some partitions (KIP-496).

        Args:
            group: the group id.
            partitions: the partitions; no member may be subscribed to their topics.

        Returns:
            For each partition, None on success or the error, such as GROUP_SUBSCRIBED_TO_TOPIC.

        Raises:
            ApiError: an error for the group as a whole, such as GROUP_ID_NOT_FOUND.
            TrionetError: the request failed.

        Cancellation: the offsets may have been deleted.
        """

        def deleted(key: TopicPartition) -> offset_delete.OffsetDeleteRequestPartition:
            return offset_delete.OffsetDeleteRequestPartition(partition_index=key.partition)

        async def send(
            node: Node, keys: Sequence[TopicPartition]
        ) -> Outcomes[TopicPartition, None]:
            body = offset_delete.OffsetDeleteRequest(
                group_id=group,
                topics=topics_of(keys, offset_delete.OffsetDeleteRequestTopic, deleted),
            )
            response: offset_delete.OffsetDeleteResponse = await self._request(node, body)
            check(response, f"group {group}")
            return failures(response.topics)

        wanted = items(partitions, TopicPartition)
        return await self._calls.for_each(wanted, self._nodes.at_group(group), send)


def _topics(topic: Callable[..., T], partitions: Iterable[TopicPartition] | None) -> list[T] | None:
    if partitions is None:
        return None
    topics = by_topic(partitions).items()
    return [topic(name=name, partition_indexes=numbers) for name, numbers in topics]


def _committed(
    topics: Iterable[
        offset_fetch.OffsetFetchResponseTopics | offset_fetch.OffsetFetchResponseTopic
    ],
) -> Committed | TrionetError:
    found: Committed = Results(by_partition(topics, _offset))
    for error in found.errors.values():
        if isinstance(error, ApiError) and error.error_code == error_codes.UNSTABLE_OFFSET_COMMIT:
            return error  # the group is retried
    return found


def _offset(
    partition: offset_fetch.OffsetFetchResponsePartitions
    | offset_fetch.OffsetFetchResponsePartition,
) -> CommittedOffset | None:
    if partition.committed_offset < 0:
        return None
    return CommittedOffset(
        partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
    )
