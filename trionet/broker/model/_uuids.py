"""The ids of Kafka: of topics and of clusters."""

from __future__ import annotations

import random

from ...net._network import SYSTEM
from ...protocol._uuids import uuid_text


def new_uuid(chance: random.Random = SYSTEM.chance) -> bytes:
    """A random id that is none of Kafka's reserved ones, and whose text is no option of a tool.

    It is a version 4 UUID; Kafka reserves ids of few set bits, and gives none whose text begins
    with a hyphen (Kafka: Uuid.randomUuid).
    """
    while True:
        drawn = bytearray(chance.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if not uuid_text(drawn).startswith("-"):
            return bytes(drawn)
