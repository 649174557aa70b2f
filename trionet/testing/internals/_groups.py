"""Consumer groups as plain values."""

from __future__ import annotations

import attrs

from ...broker.groups._group_state import GroupState
from ...broker.groups._members import Member
from ...errors import WireFormatError
from ...protocol.messages.consumer_protocol_assignment import MESSAGES
from ._broker_internals import BrokerInternals

_decode = MESSAGES[0][0]
_VERSION_BYTES = 2


@attrs.frozen
class GroupMember:
    """A member of a group.

    Attributes:
        id: assigned by the broker.
        instance_id: of a static member (``group.instance.id``).
        client_id: of the client.
        client_host: the address that it connects from.
        assignment: its assigned partitions by topic.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: dict[str, list[int]]


@attrs.frozen
class GroupView:
    """A consumer group at one moment.

    Attributes:
        id: its name.
        state: Kafka's name of the state; ``Dead`` if the group does not exist.
        generation: the number of rebalances; 0 before the first.
        protocol: the assignor that its members agreed on.
        members: its members.
        offsets: its committed offsets by topic and partition.
    """

    id: str
    state: str = GroupState.DEAD.value
    generation: int = 0
    protocol: str | None = None
    members: list[GroupMember] = attrs.Factory(list)
    offsets: dict[tuple[str, int], int] = attrs.Factory(dict)


def group_view(inside: BrokerInternals, id: str) -> GroupView:
    """The current state of a group."""
    groups = inside.groups_of(id)
    if groups is None:
        return GroupView(id)
    group = groups.groups[id]
    return GroupView(
        id,
        group.state.value,
        group.generation,
        group.protocol_name,
        [_member(each) for each in group.members],
        {partition: each.offset for partition, each in groups.offsets.of(id).items()},
    )


def _member(member: Member) -> GroupMember:
    assignment: dict[str, list[int]] = {}
    try:
        if member.assignment:
            for topic in _decode(member.assignment, _VERSION_BYTES).assigned_partitions:
                assignment[topic.topic] = sorted(topic.partitions)
    except WireFormatError:
        pass  # of a protocol other than that of consumers
    return GroupMember(
        member.id, member.instance_id, member.client_id, member.client_host, assignment
    )
