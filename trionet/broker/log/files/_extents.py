"""A checkpoint of the part of each log that is on disk, for detecting losses at the next startup.

The problem: Kafka's checkpoints record the offset up to which each log is on disk, but not the size
of that part or the topic id, and have no checksum, so that a corrupted digit goes unnoticed. With
Kafka's checkpoints alone, startup cannot distinguish a deleted segment from a missing one.

The choice: a separate file beside Kafka's files, which takes precedence over them. It contains a
version (0), a count, one line per partition, and a CRC-32C of all of these. Kafka ignores it.

Rejected: extending Kafka's files, because Kafka must be able to read the directory. Also rejected:
a table in the database, because logs must be readable without the database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from ....protocol.records._crc32c import crc32c
from ._checkpoint_files import PartitionKey

EXTENT_FILE = "log-extent-checkpoint"

_LINE = re.compile(rb"(\S+) ([0-9]+) ([0-9a-f]{32}) ([0-9 ]+)")
_OFFSET_MAX = 2**63 - 1


@attrs.frozen
class Extent:
    """The part of one log that is on disk.

    Attributes:
        topic_id: the topic's 16-byte id; a recreated topic has a different id.
        start_offset: the log start offset.
        end_offset: the recovery point.
        base_offset: the base offset of the segment that contains or starts at the recovery point.
        position: the number of bytes in that segment before the recovery point.
        bytes_before: the total size of the segments before that segment, in bytes.
        leader_epoch: the latest leader epoch.
    """

    topic_id: bytes
    start_offset: int
    end_offset: int
    base_offset: int
    position: int
    bytes_before: int
    leader_epoch: int

    @property
    def size(self) -> int:
        """The size of the log before the recovery point, in bytes."""
        return self.bytes_before + self.position


def extent_line(key: PartitionKey, extent: Extent) -> bytes:
    """Encode the line for a partition."""
    line = (
        f"{key[0]} {key[1]} {extent.topic_id.hex()} {extent.start_offset} {extent.end_offset}"
        f" {extent.base_offset} {extent.position} {extent.bytes_before} {extent.leader_epoch}\n"
    )
    return line.encode()


def encode_extents(lines: Iterable[bytes]) -> bytes:
    """Encode the checkpoint file."""
    lines = list(lines)
    body = b"0\n%d\n%b" % (len(lines), b"".join(lines))
    return body + b"crc32c %08x\n" % crc32c(body)


def decode_extents(data: bytes) -> dict[PartitionKey, Extent]:
    """Decode the checkpoint file.

    Raises:
        ValueError: the data is malformed or incomplete; the message contains the byte position.
    """
    end = len(data) - len(b"crc32c 00000000\n")
    body, seal = data[: max(end, 0)], data[max(end, 0) :]
    if seal != b"crc32c %08x\n" % crc32c(body):
        raise ValueError(f"byte {max(end, 0)}: the CRC does not match the bytes before it")
    version, count, *lines = [*body.splitlines(), b"", b""][:-2] or [b"", b""]
    if version != b"0" or count != b"%d" % len(lines):
        raise ValueError("byte 0: expected version 0, a count, and that many lines")
    extents = {}
    for line in lines:
        found = _LINE.fullmatch(line)
        numbers = [int(each) for each in found[4].split()] if found else []
        if found is None or len(numbers) != 6 or max(numbers) > _OFFSET_MAX:
            raise ValueError(f"byte {data.index(line)}: invalid line {line!r}")
        key = found[1].decode("ascii"), int(found[2])
        extents[key] = Extent(bytes.fromhex(found[3].decode()), *numbers)
    return extents
