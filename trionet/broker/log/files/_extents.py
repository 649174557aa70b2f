"""What of each log is certain to be on the disk, written down to compare it with at the next start.

Kafka's checkpoints say up to which offset a log is on the disk, and nothing of its bytes; they have
no checksum, so that a digit that has changed is believed. This file of ours stands beside them: a
version (0), a count, a line for each partition, and the CRC-32C of all that. What it says wins.
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
    """What of one log is on the disk.

    Attributes:
        topic_id: of the topic, 16 bytes; a topic made again under its name has another one.
        start_offset: the log start offset.
        end_offset: the recovery point.
        base_offset: the segment that the recovery point lies in, or begins.
        position: the bytes of that segment before the recovery point.
        bytes_before: those of all segments before it.
        leader_epoch: the newest one.
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
        """The bytes of the log before the recovery point."""
        return self.bytes_before + self.position


def extent_line(key: PartitionKey, extent: Extent) -> bytes:
    """A partition's line."""
    line = (
        f"{key[0]} {key[1]} {extent.topic_id.hex()} {extent.start_offset} {extent.end_offset}"
        f" {extent.base_offset} {extent.position} {extent.bytes_before} {extent.leader_epoch}\n"
    )
    return line.encode()


def encode_extents(lines: Iterable[bytes]) -> bytes:
    """The file's bytes."""
    lines = list(lines)
    body = b"0\n%d\n%b" % (len(lines), b"".join(lines))
    return body + b"crc32c %08x\n" % crc32c(body)


def decode_extents(data: bytes) -> dict[PartitionKey, Extent]:
    """Read the file back.

    Raises:
        ValueError: it is not one, or not whole; says at which byte.
    """
    end = len(data) - len(b"crc32c 00000000\n")
    body, seal = data[: max(end, 0)], data[max(end, 0) :]
    if seal != b"crc32c %08x\n" % crc32c(body):
        raise ValueError(f"byte {max(end, 0)}: the CRC does not match what is before it")
    version, count, *lines = [*body.splitlines(), b"", b""][:-2] or [b"", b""]
    if version != b"0" or count != b"%d" % len(lines):
        raise ValueError("byte 0: version 0, a count and as many lines were expected")
    extents = {}
    for line in lines:
        found = _LINE.fullmatch(line)
        numbers = [int(each) for each in found[4].split()] if found else []
        if found is None or len(numbers) != 6 or max(numbers) > _OFFSET_MAX:
            raise ValueError(f"byte {data.index(line)}: {line!r} is no partition's line")
        key = found[1].decode("ascii"), int(found[2])
        extents[key] = Extent(bytes.fromhex(found[3].decode()), *numbers)
    return extents
