"""What a group is, of whichever kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import attrs

from ....errors import TrionetError, WireFormatError
from ....protocol import error_codes
from ....protocol._wire import Message
from ....protocol.messages import consumer_group_describe as consumer_groups
from ....protocol.messages import describe_groups as classic_groups
from ....protocol.messages import share_group_describe as share_groups
from ....protocol.messages.consumer_protocol_assignment import MESSAGES
from ..._api_errors import api_error
from ..._node import Node
from ..._topic_partition import TopicPartition
from ..access._acl_operation import AclOperation
from ..calls._calls import Ask, Calls
from ..calls._conversions import operations

D = TypeVar("D")

_CONSUMER: Final = "consumer"
_DEAD: Final = "Dead"
_VERSION_BYTES: Final = 2
_CLASSIC_MEMBER: Final = 0
# Every version of an assignment begins like the first one.
_decode_assignment = MESSAGES[0][0]


@attrs.frozen
class GroupMember:
    """A member of a group.

    Attributes:
        id: given by the broker, or chosen by the member.
        instance_id: of a static member (``group.instance.id``).
        client_id: what the client calls itself.
        client_host: where it connects from.
        rack: where it stands, if it says and the broker tells.
        assignment: what it is assigned now.
        target_assignment: what it is to be assigned; None where there is no such thing.
        epoch: counts what it was told; -1 for a member of a classic group.
        is_classic: it speaks the protocol of classic groups.
        topics: what it subscribes to, where the broker tells.
        topic_pattern: the regular expression that it subscribes by, if it does.
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
    """A group.

    Attributes:
        id: its name.
        type: ``classic``, ``consumer`` or ``share``.
        state: as Kafka names it, such as ``Stable``.
        protocol_type: what its members speak, such as ``consumer``.
        assignor: how partitions are divided.
        members: who is in it.
        coordinator: the broker that keeps it.
        epoch: counts its changes; -1 for a classic group.
        assignment_epoch: of the last assignment; -1 for a classic group.
        operations: what the caller may do with it; None if that was not asked for.
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
    group: classic_groups.DescribedGroup, node: Node, include_operations: bool
) -> GroupDescription | TrionetError:
    """A group as DescribeGroups tells it.

    Before version 6 a group that does not exist was Dead, and no error (KIP-1043).
    """
    code = group.error_code
    if not code and group.group_state == _DEAD:
        code = error_codes.GROUP_ID_NOT_FOUND
    if code:
        return api_error(code, f"group {group.group_id}", group.error_message)
    return GroupDescription(
        group.group_id,
        "classic",
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(_classic_member(each, group.protocol_type) for each in group.members),
        node,
        operations=operations(group.authorized_operations) if include_operations else None,
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
            pass  # the rest of the group is worth to be told all the same
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
    of: Callable[[Any, Node, bool], D | TrionetError],
    *,
    include_operations: bool,
) -> Ask[str, D]:
    """Asks brokers about groups of one kind; all but the classic one have the same question.

    Args:
        calls: makes the requests.
        request: of the kind of groups.
        of: makes a description of what the answer has of a group.
        include_operations: tell, too, what the caller may do with them.
    """

    async def ask(node: Node, keys: Sequence[str]) -> dict[str, D | TrionetError]:
        body = request(group_ids=list(keys), include_authorized_operations=include_operations)
        answer = await calls.client.request(node, body)
        return {each.group_id: of(each, node, include_operations) for each in answer.groups}

    return ask


def of_consumer_group(
    group: consumer_groups.DescribedGroup, node: Node, include_operations: bool
) -> GroupDescription | TrionetError:
    """A group as ConsumerGroupDescribe tells it."""
    if group.error_code:
        return api_error(group.error_code, f"group {group.group_id}", group.error_message)
    return GroupDescription(
        group.group_id,
        "consumer",
        group.group_state,
        _CONSUMER,
        group.assignor_name,
        tuple(
            GroupMember(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host,
                each.rack_id,
                _partitions(each.assignment),
                _partitions(each.target_assignment),
                each.member_epoch,
                each.member_type == _CLASSIC_MEMBER,
                tuple(each.subscribed_topic_names),
                each.subscribed_topic_regex or None,
            )
            for each in group.members
        ),
        node,
        group.group_epoch,
        group.assignment_epoch,
        operations(group.authorized_operations) if include_operations else None,
    )


def of_share_group(
    group: share_groups.DescribedGroup, node: Node, include_operations: bool
) -> GroupDescription | TrionetError:
    """A group as ShareGroupDescribe tells it."""
    if group.error_code:
        return api_error(group.error_code, f"group {group.group_id}", group.error_message)
    return GroupDescription(
        group.group_id,
        "share",
        group.group_state,
        "share",
        group.assignor_name,
        tuple(
            GroupMember(
                each.member_id,
                None,
                each.client_id,
                each.client_host,
                each.rack_id,
                _partitions(each.assignment),
                None,
                each.member_epoch,
                False,
                tuple(each.subscribed_topic_names),
            )
            for each in group.members
        ),
        node,
        group.group_epoch,
        group.assignment_epoch,
        operations(group.authorized_operations) if include_operations else None,
    )


def _partitions(
    assignment: consumer_groups.Assignment | share_groups.Assignment,
) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )
