"""The user data of the sticky assignors, in Kafka's formats.

The data consists of the last assignment, by topic, and its generation, or only of the generation.
Malformed data is treated as absent, since a faulty member must not disrupt its group.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Final

from ..._topic_partition import TopicPartition, by_topic
from ._assignor import NO_GENERATION
from ._ownership import Claim

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")


def encode_assigned(claim: Claim) -> bytes:
    """Encode a member's last assignment (Kafka: STICKY_ASSIGNOR_USER_DATA_V1)."""
    topics = by_topic(claim.partitions)
    encoded = [_INT.pack(len(topics))]
    for topic, partitions in topics.items():
        name = topic.encode()
        encoded += (_SHORT.pack(len(name)), name, _INT.pack(len(partitions)))
        encoded += map(_INT.pack, partitions)
    encoded.append(_INT.pack(claim.generation))
    return b"".join(encoded)


def decode_assigned(raw: bytes | None) -> Claim:
    """Decode a member's last assignment; version 0 of the data has no generation."""
    try:
        return _decode_assigned(raw or b"")
    except (struct.error, UnicodeDecodeError):
        return Claim((), NO_GENERATION)


def _decode_assigned(raw: bytes) -> Claim:
    (topics,) = _INT.unpack_from(raw)
    at = _INT.size
    found: list[TopicPartition] = []
    for _ in range(topics):
        (name_bytes,) = _SHORT.unpack_from(raw, at)
        at += _SHORT.size
        topic = raw[at : at + name_bytes].decode()
        (partitions,) = _INT.unpack_from(raw, at + max(name_bytes, 0))
        if name_bytes < 0 or partitions < 0:
            raise struct.error("a negative length")
        at += name_bytes + _INT.size
        numbers = Struct(f">{partitions}i").unpack_from(raw, at)
        at += _INT.size * len(numbers)
        found += (TopicPartition(topic, number) for number in numbers)
    generation = _INT.unpack_from(raw, at)[0] if len(raw) - at >= _INT.size else NO_GENERATION
    return Claim(found, generation)


def encode_generation(generation: int) -> bytes:
    """Encode a generation (Kafka: COOPERATIVE_STICKY_ASSIGNOR_USER_DATA_V0)."""
    return _INT.pack(generation)


def decode_generation(raw: bytes | None) -> int:
    """Decode a generation; -1 if the data is absent or malformed."""
    return _INT.unpack_from(raw)[0] if raw is not None and len(raw) >= _INT.size else NO_GENERATION
