"""Sample frames of every generated message, for tests that bend them."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from protocol.generator.apis import APIS, DATA
from protocol.generator.schema import Api, Message, load_api
from protocol.kio_values import (
    codec_functions,
    entity_class,
    has_version,
    random_entity,
    write_entity,
)
from protocol.random_messages import random_message
from trionet.protocol.unrolling._layout import Struct


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
                functions = codec_functions(module, message, version)
                wire = _frame(module_name, message, version, rng)
                while len(wire) > size_max:
                    wire = _frame(module_name, message, version, rng)
                yield Sample(message.name, version, message.side, struct, *functions, wire)


def _frame(module_name: str, message: Message, version: int, rng: random.Random) -> bytes:
    """Random bytes of a message: kio's, or ours where it lacks the version."""
    if has_version(module_name, version):
        return write_entity(random_entity(entity_class(module_name, version, message.side), rng))
    module = importlib.import_module(f"trionet.protocol.messages.{module_name}")
    chunks: list[bytes] = []
    encode = codec_functions(module, message, version)[1]
    encode(random_message(message.versions[version], module, rng), chunks)
    return b"".join(chunks)
