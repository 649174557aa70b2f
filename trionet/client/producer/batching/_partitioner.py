"""Which partition a key has: murmur2, the same in all clients (Kafka: BuiltInPartitioner)."""

# Compiled by mypyc.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....protocol.records._batch import Bytes
from ....protocol.records._types import as_bytes

if TYPE_CHECKING:
    from mypy_extensions import i64

_MULTIPLIER: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C
_MASK: Final = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash of a key, without a sign (Kafka: Utils.murmur2)."""
    length: i64 = len(data)
    value: i64 = (_SEED ^ length) & _MASK
    word: i64
    place: i64 = 0
    whole: i64 = length & -4
    while place < whole:
        word = data[place] | data[place + 1] << 8 | data[place + 2] << 16 | data[place + 3] << 24
        word = word * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
        place += 4
    if place < length:
        rest: i64 = length - place
        if rest == 3:
            value ^= data[place + 2] << 16
        if rest >= 2:
            value ^= data[place + 1] << 8
        value = (value ^ data[place]) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def partition_of(key: Bytes, partitions: int) -> int:
    """The partition of a key among so many.

    Raises:
        TypeError: the key is not bytes.
    """
    if not isinstance(key, bytes):
        key = as_bytes(key)
    return (murmur2(key) & 0x7FFF_FFFF) % partitions
