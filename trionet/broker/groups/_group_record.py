"""The members of a stored group as bytes: how many Kafka would take, and in pieces for a database.

A piece is written and read at once; a whole group may be as large as a request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from ._stored_group import StoredGroup, StoredMember

#: How much of a group is written in one step: less than a millisecond's work.
PIECE_BYTES: Final = 64 * 1024

# Kafka writes a group as one record (GroupMetadataKey and GroupMetadataValue, version 3): what
# those have beside their texts and bytes, and what a batch of one record has around them.
_GROUP_BYTES: Final = 61 + 21 + 2 + 2 + 2 + 2 + 4 + 2 + 2 + 8 + 4
_MEMBER_BYTES: Final = 2 + 2 + 2 + 2 + 4 + 4 + 4 + 4

_BYTES_FIELDS: Final = ("metadata", "assignment")


def record_bytes(group: StoredGroup) -> int:
    """The size of the batch that Kafka would write the group in (__consumer_offsets)."""
    size = _GROUP_BYTES
    for text in (group.id, group.protocol_type, group.protocol_name, group.leader_id):
        size += len((text or "").encode())
    for member in group.members:
        size += _MEMBER_BYTES + len(member.metadata) + len(member.assignment)
        for text in (member.id, member.instance_id, member.client_id, member.client_host):
            size += len((text or "").encode())
    return size


def pieces(members: Iterable[StoredMember]) -> Iterator[bytes]:
    """The members, in pieces of :data:`PIECE_BYTES`."""
    buffer = bytearray()
    for chunk in _chunks(members):
        rest = memoryview(chunk)
        while rest:
            taken = rest[: PIECE_BYTES - len(buffer)]
            buffer += taken
            rest = rest[len(taken) :]
            if len(buffer) == PIECE_BYTES:
                yield bytes(buffer)
                buffer.clear()
    if buffer:
        yield bytes(buffer)


def _chunks(members: Iterable[StoredMember]) -> Iterator[bytes]:
    """Of each a line of JSON, with the sizes of what follows it as it is."""
    for member in members:
        fields = {field.name: getattr(member, field.name) for field in attrs.fields(StoredMember)}
        values = [fields[name] for name in _BYTES_FIELDS]
        fields.update({name: len(fields[name]) for name in _BYTES_FIELDS})
        yield json.dumps(fields).encode() + b"\n"
        yield from values


def members_of(data: bytes) -> tuple[StoredMember, ...]:
    """The members that :func:`pieces` was given, from all pieces together."""
    members = []
    position = 0
    while position < len(data):
        end = data.index(b"\n", position)
        fields: dict[str, Any] = json.loads(data[position:end])
        position = end + 1
        for name in _BYTES_FIELDS:
            size = fields[name]
            fields[name] = data[position : position + size]
            position += size
        members.append(StoredMember(**fields))
    return tuple(members)
