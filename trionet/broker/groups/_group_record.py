"""Encodes a group's members for the database.

The encoded members are stored in chunks, because a group may be as large as a request and a single
write must not take long. The size limit applies to the record that Kafka would write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from ._stored_group import StoredGroup, StoredMember

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
        fields = {field.name: getattr(member, field.name) for field in attrs.fields(StoredMember)}
        values = [fields[name] for name in _BYTES_FIELDS]
        fields.update({name: len(fields[name]) for name in _BYTES_FIELDS})
        yield json.dumps(fields).encode() + b"\n"
        yield from values


def decode_members(data: bytes) -> tuple[StoredMember, ...]:
    """Decode members from the concatenated chunks of :func:`encode_members`."""
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
