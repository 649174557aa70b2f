"""The stored state of a group, from which it is restored after a restart of the broker.

The encoded members are stored in chunks, because a group may be as large as a request and a single
write must not take long. The size limit applies to the record that Kafka would write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from ..storage._database import DatabaseError
from ..storage._tables import BLOB, TEXT, Fields, nullable, real
from ._group import Group, GroupSettings, GroupState
from ._members import Member

# The longest time that a request can contain.
_SECONDS: Final = real(-(2**31) / 1000, 2**31 / 1000)

MEMBER: Final = Fields(
    id=TEXT,
    instance_id=nullable(TEXT),
    client_id=TEXT,
    client_host=TEXT,
    session_seconds=_SECONDS,
    rebalance_seconds=_SECONDS,
    metadata=BLOB,
    assignment=BLOB,
)


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
                {stored.protocol_name or "": each.metadata},
                has_synced=True,
                is_new=False,
                was_in_generation=True,
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


def inherited(group: Group, settings: GroupSettings, now: float) -> Group:
    """Return another node's group as if the new coordinator had read it from storage.

    Members that have not been in any generation are dropped, since they are not stored. A rebalance
    in progress is abandoned, and all members must rejoin. The time since which a group has been
    empty continues.
    """
    new = {member.id for member in group.members if not member.was_in_generation}
    stored = snapshot(group, changed_at_ms=0)
    kept = tuple(member for member in stored.members if member.id not in new)
    taken = restored(attrs.evolve(stored, members=kept), settings, now)
    taken.changed_at = group.changed_at
    if kept and group.state in (GroupState.PREPARING, GroupState.COMPLETING):
        taken.rebalance(now)
    return taken


#: The size of a chunk, which is written in less than a millisecond.
CHUNK_BYTES: Final = 64 * 1024

# Kafka writes a group as one record (GroupMetadataKey and GroupMetadataValue, version 3). These are
# the sizes without strings and bytes, including the headers of a batch of one record.
_GROUP_BYTES: Final = 61 + 21 + 2 + 2 + 2 + 2 + 4 + 2 + 2 + 8 + 4
_MEMBER_BYTES: Final = 2 + 2 + 2 + 2 + 4 + 4 + 4 + 4

_BYTES_FIELDS: Final = ("metadata", "assignment")


def record_bytes(group: StoredGroup) -> int:
    """Return the size of the record batch that Kafka would write for the group."""
    size = _GROUP_BYTES
    for text in (group.id, group.protocol_type, group.protocol_name, group.leader_id):
        size += len((text or "").encode())
    for member in group.members:
        size += _MEMBER_BYTES + len(member.metadata) + len(member.assignment)
        for text in (member.id, member.instance_id, member.client_id, member.client_host):
            size += len((text or "").encode())
    return size


def encode_members(members: Iterable[StoredMember]) -> Iterator[bytes]:
    """Yield the encoded members in chunks of :data:`CHUNK_BYTES`."""
    buffer = bytearray()
    for chunk in _chunks(members):
        rest = memoryview(chunk)
        while rest:
            taken = rest[: CHUNK_BYTES - len(buffer)]
            buffer += taken
            rest = rest[len(taken) :]
            if len(buffer) == CHUNK_BYTES:
                yield bytes(buffer)
                buffer.clear()
    if buffer:
        yield bytes(buffer)


def _chunks(members: Iterable[StoredMember]) -> Iterator[bytes]:
    """Yield, per member, a line of JSON with sizes for bytes fields, then the fields' contents."""
    for member in members:
        row = MEMBER.checked([getattr(member, name) for name in MEMBER.names])
        fields = dict(zip(MEMBER.names, row, strict=True))
        values = [fields[name] for name in _BYTES_FIELDS]
        fields.update({name: len(fields[name]) for name in _BYTES_FIELDS})
        yield json.dumps(fields).encode() + b"\n"
        yield from values


def decode_members(data: bytes) -> tuple[StoredMember, ...]:
    """Decode members from the concatenated chunks of :func:`encode_members`.

    Raises:
        DatabaseError, ValueError, TypeError, LookupError: the data is not that of members.
    """
    members = []
    position = 0
    while position < len(data):
        end = data.index(b"\n", position)
        fields: dict[str, Any] = json.loads(data[position:end])
        position = end + 1
        for name in _BYTES_FIELDS:
            size = fields[name]
            if not 0 <= size <= len(data) - position:
                raise ValueError(f"{name} of {size} bytes, of which {len(data) - position} remain")
            fields[name] = data[position : position + size]
            position += size
        members.append(stored_member(fields))
    return tuple(members)


def check_leader(group: StoredGroup) -> StoredGroup:
    """Return a group after checking its leader, before it is written and after it is read.

    Raises:
        DatabaseError: the leader is not one of the members.
    """
    if group.members and group.leader_id not in {each.id for each in group.members}:
        raise DatabaseError(f"the leader of group {group.id!r} is not one of its members")
    return group


def stored_member(fields: Mapping[str, Any]) -> StoredMember:
    """Return a member with the given fields.

    Raises:
        DatabaseError: a value is not allowed.
        LookupError: a field is missing.
    """
    return StoredMember(*MEMBER.checked([fields[name] for name in MEMBER.names]))
