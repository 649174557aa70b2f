"""Enums of the protocol to which newer brokers may add members."""

from __future__ import annotations

from enum import IntEnum


class WireEnum(IntEnum):
    """An enum that decodes unknown numbers as UNKNOWN, as Kafka's own client does."""

    @classmethod
    def _missing_(cls, value: object) -> WireEnum | None:
        return cls["UNKNOWN"] if isinstance(value, int) else None
