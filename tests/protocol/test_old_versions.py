"""The versions that Kafka 4.0 removed (KIP-896), byte for byte against a second source.

That is kafka-python's set of old definitions, written by its authors one version at a time. For
the few messages that it does not have, the frames here are written by hand after Kafka's protocol
guide.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
import types
from collections.abc import Iterator
from typing import Any, cast

import pytest

from protocol.frames_by_hand import by_hand
from protocol.generator.old import CHANGES, FIRST_VERSIONS
from protocol.generator.schema import Message
from protocol.kio_values import codec_functions, has_version
from protocol.random_messages import random_message
from protocol.samples import api_of
from trionet.errors import LocalProtocolError
from trionet.protocol import api_keys
from trionet.protocol._codec import Chunk, lookup
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from trionet.protocol.messages.produce import ProduceRequest
from trionet.protocol.messages.registry import APIS as KNOWN
from trionet.protocol.unrolling._layout import Struct

#: Random messages for each version.
ROUNDS = 20


def definitions() -> dict[tuple[str, int], Any]:
    """kafka-python's old classes by message name and version."""
    folder = pytest.importorskip("kafka.protocol.old")
    found = {}
    for info in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{folder.__name__}.{info.name}")
        for name, value in vars(module).items():
            parts = re.fullmatch(r"(\w+)_v(\d+)", name)
            if parts is not None:
                found[parts[1], int(parts[2])] = value
    return found


def old_versions() -> Iterator[tuple[str, Message, int, Struct]]:
    for module in FIRST_VERSIONS:
        for message in api_of(module).messages.values():
            for version, struct in message.versions.items():
                if not has_version(module, version):
                    yield module, message, version, struct


def values_for(schema: Any, message: Any) -> list[Any]:
    """What kafka-python encodes: for each of its names, in its order, our value."""
    return [
        _value_for(getattr(kind, "array_of", None), getattr(message, name))
        for name, kind in zip(schema.names, schema.fields, strict=True)
    ]


def _value_for(schema: Any, value: Any) -> Any:
    if hasattr(schema, "names") and value is not None:
        return [tuple(values_for(schema, item)) for item in value]
    return value


def check(definition: Any, struct: Struct, codec: Any, module: types.ModuleType, seed: str) -> None:
    decode, encode = codec
    for round_ in range(ROUNDS):
        message = random_message(struct, module, random.Random(f"{seed} {round_}"))
        chunks: list[bytes] = []
        encode(message, chunks)
        wire = b"".join(chunks)
        values = values_for(definition.SCHEMA, message)

        assert definition.SCHEMA.encode(values) == wire, seed
        assert values_for(definition.SCHEMA, decode(wire, 0)) == values, seed
        assert decode(wire, 0) == message, seed


#: Without a usable definition: kafka-python has none of the first five, and in the last one a
#: single partition where Kafka has an array of them.
BY_HAND = {
    f"{name}{side}"
    for name in (
        "AlterReplicaLogDirs",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "DescribeDelegationToken",
    )
    for side in ("Request", "Response")
} | {"DescribeLogDirsRequest"}


def test_old_versions_are_those_of_kafka_python() -> None:
    theirs = definitions()
    checked = set()
    for module_name, message, version, struct in old_versions():
        if message.name not in BY_HAND:
            module = importlib.import_module(f"trionet.protocol.messages.{module_name}")
            codec = codec_functions(module, message, version)
            definition = theirs[message.name, version]
            check(definition, struct, codec, module, f"{message.name} v{version}")
            checked.add((message.name, version))

    assert len(checked) == 41


def test_every_table_of_old_versions_belongs_to_one() -> None:
    old = {(message.name, version) for _, message, version, _ in old_versions()}

    assert set(CHANGES) <= old


def test_frames_of_the_protocol_guide() -> None:
    """What kafka-python cannot check: written by hand, one byte after the other."""
    seen = set()
    for message, frame in by_hand():
        name = type(message).__name__
        seen.add(name)
        api = name.removesuffix("Request").removesuffix("Response")
        codec: Any = lookup(next(key for key, row in KNOWN.items() if row[1] == api), 0)
        side = "request" if name.endswith("Request") else "response"
        chunks: list[Chunk] = []
        getattr(codec, f"encode_{side}")(message, chunks)

        assert b"".join(cast(list[bytes], chunks)) == frame, name
        assert getattr(codec, f"decode_{side}")(frame, 0) == message, name
    assert seen == BY_HAND


def test_request_field_that_came_later_must_not_vanish() -> None:
    codec = lookup(api_keys.PRODUCE, 2)
    assert codec is not None

    with pytest.raises(LocalProtocolError, match="transactional_id is set"):
        codec.encode_request(ProduceRequest(transactional_id="t"), [])


def test_request_field_that_went_must_not_vanish() -> None:
    topic = ListOffsetsTopic(partitions=[ListOffsetsPartition(max_num_offsets=10)])
    codec = lookup(api_keys.LIST_OFFSETS, 1)
    assert codec is not None

    with pytest.raises(LocalProtocolError, match="max_num_offsets is set"):
        codec.encode_request(ListOffsetsRequest(topics=[topic]), [])
