"""The stored state of a group, from which it is restored after a restart of the broker."""

from __future__ import annotations

import attrs

from ._group import Group
from ._group_state import GroupSettings, GroupState
from ._members import Member


@attrs.frozen
class StoredMember:
    """The stored state of a member."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_seconds: float
    rebalance_seconds: float
    metadata: bytes
    assignment: bytes


@attrs.frozen
class StoredGroup:
    """The state of a group after its last rebalance, or after a static member was replaced."""

    id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    changed_at_ms: int
    members: tuple[StoredMember, ...]


def snapshot(group: Group, changed_at_ms: int) -> StoredGroup:
    """Return the state of a group to store, including proposed assignments."""
    proposed = group.proposed or {}
    name = group.protocol_name or ""
    return StoredGroup(
        group.id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.members.leader_id,
        changed_at_ms,
        tuple(
            StoredMember(
                member.id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.session_seconds,
                member.rebalance_seconds,
                member.protocols.get(name, b""),
                proposed.get(member.id, member.assignment),
            )
            for member in group.members
        ),
    )


def restored(stored: StoredGroup, settings: GroupSettings, now: float) -> Group:
    """Recreate a group from its stored state; the members' session timeouts restart."""
    group = Group(stored.id, settings, now)
    group.generation = stored.generation
    group.protocol_type = stored.protocol_type
    group.protocol_name = stored.protocol_name
    for each in stored.members:
        expires_at = now + each.session_seconds
        group.members.add(
            Member(
                each.id,
                each.instance_id,
                each.client_id,
                each.client_host,
                each.session_seconds,
                each.rebalance_seconds,
                stored.protocol_type or "",
                {stored.protocol_name or "": each.metadata},
                has_synced=True,
                is_new=False,
                expires_at=expires_at,
                assignment=each.assignment,
            )
        )
        group.timeouts.wake(expires_at)
    if stored.members:
        group.state = GroupState.STABLE
        group.members.leader_id = stored.leader_id
    if len(stored.members) > settings.members_max:
        # The limit was lowered. A rebalance gives the members that will be removed time to commit.
        group.rebalance(now)
    return group


def inherited(group: Group, settings: GroupSettings, changed_at_ms: int, now: float) -> Group:
    """Return another node's group as if the new coordinator had read it from storage.

    Members that have not been in any generation are dropped, since they are not stored. A rebalance
    in progress is abandoned, and all members must rejoin.
    """
    new = {member.id for member in group.members if member.is_new}
    stored = snapshot(group, changed_at_ms)
    kept = tuple(member for member in stored.members if member.id not in new)
    taken = restored(attrs.evolve(stored, members=kept), settings, now)
    if kept and group.state in (GroupState.PREPARING, GroupState.COMPLETING):
        taken.rebalance(now)
    return taken
