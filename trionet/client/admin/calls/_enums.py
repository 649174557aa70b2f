"""Enums of the protocol, including the operations in access control lists."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_NOT_SENT: Final = -(2**31)


class WireEnum(IntEnum):
    """An enum that decodes unknown numbers as UNKNOWN, as Kafka's own client does."""

    @classmethod
    def _missing_(cls, value: object) -> WireEnum | None:
        return cls["UNKNOWN"] if isinstance(value, int) else None


class AclOperation(WireEnum):
    """An operation on a resource; the values are Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


def operations(bits: int) -> frozenset[AclOperation] | None:
    """Decode a bit field of permitted operations (KIP-430); None if it was not sent."""
    if bits == _NOT_SENT:
        return None
    return frozenset(each for each in AclOperation if each and bits >> each & 1)
