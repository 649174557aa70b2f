"""Converts consumer groups to plain values."""

from __future__ import annotations

import attrs

from ...broker.groups._group import GroupState
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
        id: the member id assigned by the broker.
        instance_id: the ``group.instance.id`` of a static member; None for a dynamic member.
        client_id: the client id of the member.
        client_host: the address from which the member connects.
        assignment: the numbers of the assigned partitions, keyed by topic.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: dict[str, list[int]]


@attrs.frozen
class GroupView:
    """A snapshot of a consumer group.

    Attributes:
        id: the group id.
        state: Kafka's name for the state; ``Dead`` if the group does not exist.
        generation: the generation, incremented by each rebalance; 0 before the first rebalance.
        protocol: the selected assignor; None if none is selected.
        members: the members of the group.
        offsets: the committed offsets, keyed by topic and partition.
    """

    id: str
    state: str = GroupState.DEAD.value
    generation: int = 0
    protocol: str | None = None
    members: list[GroupMember] = attrs.Factory(list)
    offsets: dict[tuple[str, int], int] = attrs.Factory(dict)


def group_view(inside: BrokerInternals, id: str) -> GroupView:
    """Return a snapshot of a group."""
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
