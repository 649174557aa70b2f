"""Numbers of Kafka's, of which a newer broker may know more than we do."""

from __future__ import annotations

from enum import IntEnum


class WireEnum(IntEnum):
    """A number that we do not know is read as UNKNOWN, as Kafka's own client does."""

    @classmethod
    def _missing_(cls, value: object) -> WireEnum | None:
        return cls["UNKNOWN"] if isinstance(value, int) else None
