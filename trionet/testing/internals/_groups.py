"""A consumer group as a plain value."""

from __future__ import annotations

import attrs

from ...broker.groups._group_state import GroupState
from ...broker.groups._member import Member
from ...errors import WireFormatError
from ...protocol.messages.consumer_protocol_assignment import MESSAGES
from ._broker_internals import Inside

_decode = MESSAGES[0][0]
_VERSION_BYTES = 2


@attrs.frozen
class GroupMember:
    """A member of a group.

    Attributes:
        id: given by the broker.
        instance_id: of a static member (``group.instance.id``).
        client_id: what the client calls itself.
        client_host: where it connects from.
        assignment: the partitions that it was assigned, by topic.
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
        state: by the name that Kafka's tools show; ``Dead`` if there is none.
        generation: counts the rebalances; 0 before the first.
        protocol: the assignor that its members agree on.
        members: who is in it.
        offsets: what it has committed, by topic and partition.
    """

    id: str
    state: str = GroupState.DEAD.value
    generation: int = 0
    protocol: str | None = None
    members: list[GroupMember] = attrs.Factory(list)
    offsets: dict[tuple[str, int], int] = attrs.Factory(dict)


def group_view(inside: Inside, id: str) -> GroupView:
    """The group as it is now."""
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
        pass  # of another protocol than consumers speak
    return GroupMember(
        member.id, member.instance_id, member.client_id, member.client_host, assignment
    )
