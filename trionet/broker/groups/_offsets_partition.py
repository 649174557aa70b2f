"""Maps ids to partitions of Kafka's internal topics, whose leaders are the coordinators.

Groups are mapped to partitions of ``__consumer_offsets`` and transactional ids to partitions of
``__transaction_state``, in the same way (Kafka: GroupCoordinator.partitionFor,
TransactionStateManager.partitionFor).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from operator import mul
from typing import Final

from ..config._broker_keys import OFFSETS_PARTITIONS

OFFSETS_TOPIC: Final = "__consumer_offsets"

PARTITIONS: Final = OFFSETS_PARTITIONS
"""The default of ``offsets.topic.num.partitions`` and ``transaction.state.log.num.partitions``;
other values have no effect."""

_CACHED_MAX: Final = 10_000
# Longer ids are not cached, since they are unusual and could fill the memory.
_CACHED_CHARACTERS_MAX: Final = 256

# The weights of the UTF-16 units of one part of a text in the hash.
_PART: Final = 1024
_WEIGHTS: Final = tuple(pow(31, _PART - 1 - index, 2**32) for index in range(_PART))
_WEIGHT_OF_PART: Final = pow(31, _PART, 2**32)


def partition_of(id: str) -> int:
    """Return the number of the partition that a group or transactional id is assigned to."""
    if len(id) <= _CACHED_CHARACTERS_MAX:
        return _partition_of_short(id)
    return _partition_of(id)


def _partition_of(id: str) -> int:
    # Kafka uses Java's abs(), and 0 for the smallest integer, which has no positive counterpart.
    return abs(java_hash(id)) % 2**31 % PARTITIONS


_partition_of_short = lru_cache(maxsize=_CACHED_MAX)(_partition_of)


def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode()``, a signed hash of the UTF-16 code units."""
    data = text.encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(data) // 2}H", data)
    head = len(units) % _PART
    value = 0
    for unit in units[:head]:
        value = (31 * value + unit) & 0xFFFFFFFF
    # Hashing whole parts is ten times as fast; clients may send ids of any length.
    for start in range(head, len(units), _PART):
        part = sum(map(mul, units[start : start + _PART], _WEIGHTS))
        value = (_WEIGHT_OF_PART * value + part) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value
