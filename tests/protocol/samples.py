"""Sample frames of every generated message, for tests that bend them."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from protocol.generator.apis import APIS, DATA
from protocol.generator.schema import Api, Struct, load_api
from protocol.kio_values import codec_functions, entity_class, random_entity, write_entity


class Sample(NamedTuple):
    """One message at one version, its functions, and a random frame of it."""

    name: str
    version: int
    side: str
    struct: Struct
    decode: Any
    encode: Any
    wire: bytes

    def encoded(self, message: object) -> bytes:
        chunks: list[bytes] = []
        self.encode(message, chunks)
        return b"".join(chunks)


@cache
def api_of(module_name: str) -> Api:
    return load_api(module_name)


def samples(seed: str, *, size_max: int = 10**9) -> Iterator[Sample]:
    """A random frame of each version of each message, at most ``size_max`` bytes long."""
    for module_name in (*APIS, *DATA):
        module = importlib.import_module(f"trionet.protocol.messages.{module_name}")
        for message in api_of(module_name).messages.values():
            for version, struct in message.versions.items():
                rng = random.Random(f"{seed} {message.name} {version}")
                entity = entity_class(module_name, version, message.side)
                wire = write_entity(random_entity(entity, rng))
                while len(wire) > size_max:
                    wire = write_entity(random_entity(entity, rng))
                functions = codec_functions(module, message, version)
                yield Sample(message.name, version, message.side, struct, *functions, wire)
