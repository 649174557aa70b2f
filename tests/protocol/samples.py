"""Random messages, and sample frames of every generated message, for tests that bend them."""

from __future__ import annotations

import importlib
import random
import types
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from protocol.generator.apis import APIS, DATA
from protocol.generator.schema import Api, Message, load_api
from protocol.kio_values import (
    COUNTS,
    TEXTS,
    codec_functions,
    entity_class,
    has_version,
    random_entity,
    random_integer,
    write_entity,
)
from trionet.protocol.unrolling._layout import CODES, Field, Struct

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


def random_message(struct: Struct, module: types.ModuleType, rng: random.Random) -> Any:
    """A message of ``module``'s class with every field random, at the version of ``struct``."""
    values = {field.name: _random_field(field, module, rng) for field in struct.fields}
    return getattr(module, struct.name)(**values)


def _random_field(field: Field, module: types.ModuleType, rng: random.Random) -> Any:
    if field.nullable and rng.random() < 0.3:
        return None
    if field.array:
        return [_random_value(field, module, rng) for _ in range(rng.choice(COUNTS))]
    return _random_value(field, module, rng)


def _random_value(field: Field, module: types.ModuleType, rng: random.Random) -> Any:
    if field.struct is not None:
        return random_message(field.struct, module, rng)
    if field.kind == "bool":
        return rng.random() < 0.5
    if field.kind == "string":
        return rng.choice(TEXTS)
    if field.kind in ("bytes", "records"):
        return rng.randbytes(rng.choice((0, 1, 16, 126, 127, 128, 400)))
    if field.kind == "uuid":
        return rng.choice((bytes(16), rng.randbytes(16)))
    if field.kind == "float64":
        return rng.choice((0.0, -1.0, 1e308))
    if field.kind == "uint16":
        return random_integer(17, rng) & 0xFFFF
    return random_integer(_BITS[CODES[field.kind]], rng)


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
