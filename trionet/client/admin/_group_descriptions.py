"""Descriptions of classic, consumer and share groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import attrs

from ...errors import TrionetError, WireFormatError
from ...protocol import error_codes
from ...protocol._wire import Message
from ...protocol.messages import consumer_group_describe as consumer_groups
from ...protocol.messages import describe_groups as classic_groups
from ...protocol.messages import share_group_describe as share_groups
from ...protocol.messages.consumer_protocol_assignment import MESSAGES
from .._api_errors import api_error
from .._topic_partition import TopicPartition
from ..network._cluster import Node
from ._calls import Calls, Outcomes, SendTo
from ._conversions import AclOperation, failure, operations

D = TypeVar("D")

_CONSUMER: Final = "consumer"
_DEAD: Final = "Dead"
_VERSION_BYTES: Final = 2
_CLASSIC_MEMBER: Final = 0
# All versions of an assignment start with the fields of the first one.
_decode_assignment = MESSAGES[0][0]


@attrs.frozen
class GroupMember:
    """A member of a group.

    Attributes:
        id: the member id.
        instance_id: the ``group.instance.id`` of a static member.
        client_id: the ``client.id``.
        client_host: the host that the member connects from.
        rack: the member's rack, if known.
        assignment: the current assignment.
        target_assignment: the target assignment; None for classic and share groups.
        epoch: the member epoch; -1 in a classic group.
        is_classic: whether the member uses the classic protocol.
        topics: the topics that the member subscribes to, if reported.
        topic_pattern: the regular expression that the member subscribes to, if any.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rack: str | None
    assignment: frozenset[TopicPartition]
    target_assignment: frozenset[TopicPartition] | None = None
    epoch: int = -1
    is_classic: bool = True
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None


@attrs.frozen
class GroupDescription:
    """The description of a group.

    Attributes:
        id: the group id.
        type: ``classic``, ``consumer`` or ``share``.
        state: Kafka's name of the state, such as ``Stable``.
        protocol_type: the members' protocol, such as ``consumer``.
        assignor: the name of the assignor.
        members: the members.
        coordinator: the group's coordinator.
        epoch: the group epoch; -1 for a classic group.
        assignment_epoch: the epoch of the target assignment; -1 for a classic group.
        operations: the caller's authorized operations; None if not requested.
    """

    id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[GroupMember, ...]
    coordinator: Node
    epoch: int = -1
    assignment_epoch: int = -1
    operations: frozenset[AclOperation] | None = None


def of_classic_group(
    group: classic_groups.DescribedGroup, node: Node
) -> GroupDescription | TrionetError:
    """Return the description of a group in a DescribeGroups response.

    Before version 6, a response describes a group that does not exist as Dead, without an error
    (KIP-1043).
    """
    about = f"group {group.group_id}"
    if not group.error_code and group.group_state == _DEAD:
        return api_error(error_codes.GROUP_ID_NOT_FOUND, about)
    return failure(group, about) or GroupDescription(
        group.group_id,
        "classic",
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(_classic_member(each, group.protocol_type) for each in group.members),
        node,
        operations=operations(group.authorized_operations),
    )


def _classic_member(member: classic_groups.DescribedGroupMember, protocol_type: str) -> GroupMember:
    partitions: Iterable[TopicPartition] = ()
    if protocol_type == _CONSUMER and member.member_assignment:
        try:
            assignment = _decode_assignment(bytes(member.member_assignment), _VERSION_BYTES)
            partitions = [
                TopicPartition(topic.topic, number)
                for topic in assignment.assigned_partitions
                for number in topic.partitions
            ]
        except WireFormatError:
            pass  # the rest of the description is still useful
    return GroupMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        None,
        frozenset(partitions),
    )


def describing(
    calls: Calls,
    request: Callable[..., Message],
    described: Callable[[Any, Node], D],
    *,
    include_operations: bool,
) -> SendTo[str, D]:
    """Return a function that requests the descriptions of one type of group from a broker.

    The requests for all types of groups but classic ones have the same fields.

    Args:
        calls: sends the requests.
        request: the class of the request.
        described: converts a group in the response that has no error.
        include_operations: whether to include the caller's authorized operations.
    """

    async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, D]:
        body = request(group_ids=list(keys), include_authorized_operations=include_operations)
        response = await calls.client.request(node, body)
        return {
            each.group_id: failure(each, f"group {each.group_id}") or described(each, node)
            for each in response.groups
        }

    return send


def of_consumer_group(group: consumer_groups.DescribedGroup, node: Node) -> GroupDescription:
    """Return the description of a group in a ConsumerGroupDescribe response."""
    return _of_group(group, node, "consumer", _consumer_member)


def of_share_group(group: share_groups.DescribedGroup, node: Node) -> GroupDescription:
    """Return the description of a group in a ShareGroupDescribe response."""
    return _of_group(group, node, "share", _share_member)


def _of_group(
    group: consumer_groups.DescribedGroup | share_groups.DescribedGroup,
    node: Node,
    type: str,
    member: Callable[[Any], GroupMember],
) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        type,
        group.group_state,
        type,
        group.assignor_name,
        tuple(map(member, group.members)),
        node,
        group.group_epoch,
        group.assignment_epoch,
        operations(group.authorized_operations),
    )


def _consumer_member(member: consumer_groups.Member) -> GroupMember:
    return GroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rack_id,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        member.member_epoch,
        member.member_type == _CLASSIC_MEMBER,
        tuple(member.subscribed_topic_names),
        member.subscribed_topic_regex or None,
    )


def _share_member(member: share_groups.Member) -> GroupMember:
    return GroupMember(
        member.member_id,
        None,
        member.client_id,
        member.client_host,
        member.rack_id,
        _partitions(member.assignment),
        epoch=member.member_epoch,
        is_classic=False,
        topics=tuple(member.subscribed_topic_names),
    )


def _partitions(
    assignment: consumer_groups.Assignment | share_groups.Assignment,
) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )
