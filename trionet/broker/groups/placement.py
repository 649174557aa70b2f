"""Which partition of ``__consumer_offsets`` a group belongs to: its leader is the coordinator.

(Kafka: GroupCoordinator.partitionFor.)
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

PARTITIONS: Final = 50
"""As many as ``offsets.topic.num.partitions`` is in Kafka if nobody sets it."""

_CACHED_MAX: Final = 10_000


@lru_cache(maxsize=_CACHED_MAX)
def partition_of(group_id: str) -> int:
    """The number of the group's partition."""
    # Kafka takes what Java's abs() makes of the hash, and 0 for the one that has no positive.
    return abs(java_hash(group_id)) % 2**31 % PARTITIONS


def java_hash(text: str) -> int:
    """String.hashCode() of Java: over UTF-16 units, and with a sign."""
    data = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for (unit,) in struct.iter_unpack("<H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value
