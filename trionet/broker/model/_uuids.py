"""Generates ids of topics and clusters."""

from __future__ import annotations

import random

from ...net._network import SYSTEM
from ...protocol._uuids import uuid_text


def new_uuid(rng: random.Random = SYSTEM.chance) -> bytes:
    """Return a random version 4 UUID (Kafka: Uuid.randomUuid).

    Like Kafka, skips ids whose text begins with a hyphen, which tools would take for an option.
    Kafka's reserved ids are not of version 4.
    """
    while True:
        drawn = bytearray(rng.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if not uuid_text(drawn).startswith("-"):
            return bytes(drawn)
