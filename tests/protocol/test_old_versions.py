"""The versions that Kafka 4.0 removed (KIP-896), byte for byte against a second source.

That is kafka-python's set of old definitions, written by its authors one version at a time. For
the few messages that it does not have, the frames here are written by hand, field by field, after
Kafka's protocol guide.
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

from protocol.generator.old import CHANGES, FIRST_VERSIONS
from protocol.generator.schema import Message
from protocol.kio_values import codec_functions, has_version
from protocol.samples import api_of, random_message
from trionet.errors import LocalProtocolError
from trionet.protocol import api_keys
from trionet.protocol._codec import Chunk, lookup
from trionet.protocol._wire import Message as WireMessage
from trionet.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)
from trionet.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from trionet.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from trionet.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from trionet.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from trionet.protocol.messages.produce import ProduceRequest
from trionet.protocol.messages.registry import APIS as KNOWN
from trionet.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from trionet.protocol.unrolling._layout import Struct


def int16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


def int32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def int64(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def string(value: str) -> bytes:
    return int16(len(value)) + value.encode()


def by_hand() -> Iterator[tuple[WireMessage, bytes]]:
    """Messages of version 0 that kafka-python cannot check, and their bytes."""
    yield from _log_dirs()
    yield from _tokens()
    yield from _token_lists()


def _log_dirs() -> Iterator[tuple[WireMessage, bytes]]:
    moved = AlterReplicaLogDirTopic(name="t", partitions=[0, 7])
    yield (
        AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/d", topics=[moved])]),
        int32(1) + string("/d") + int32(1) + string("t") + int32(2) + int32(0) + int32(7),
    )
    result = AlterReplicaLogDirTopicResult(
        topic_name="t",
        partitions=[AlterReplicaLogDirPartitionResult(partition_index=7, error_code=57)],
    )
    yield (
        AlterReplicaLogDirsResponse(throttle_time_ms=5, results=[result]),
        int32(5) + int32(1) + string("t") + int32(1) + int32(7) + int16(57),
    )
    yield (
        DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="t", partitions=[1, 2])]),
        int32(1) + string("t") + int32(2) + int32(1) + int32(2),
    )
    yield DescribeLogDirsRequest(topics=None), int32(-1)


def _tokens() -> Iterator[tuple[WireMessage, bytes]]:
    renewer = CreatableRenewers(principal_type="User", principal_name="bob")
    yield (
        CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1),
        int32(1) + string("User") + string("bob") + int64(-1),
    )
    yield (
        CreateDelegationTokenResponse(
            error_code=0,
            principal_type="User",
            principal_name="eve",
            issue_timestamp_ms=1,
            expiry_timestamp_ms=2,
            max_timestamp_ms=3,
            token_id="id",
            hmac=b"\x01\x02",
            throttle_time_ms=4,
        ),
        b"".join(
            [
                int16(0) + string("User") + string("eve"),
                int64(1) + int64(2) + int64(3),
                string("id") + int32(2) + b"\x01\x02" + int32(4),
            ]
        ),
    )
    yield RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=9), int32(1) + b"h" + int64(9)
    yield (
        ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=9),
        int32(1) + b"h" + int64(9),
    )
    for answer in (RenewDelegationTokenResponse, ExpireDelegationTokenResponse):
        yield (
            answer(error_code=66, expiry_timestamp_ms=8, throttle_time_ms=7),
            int16(66) + int64(8) + int32(7),
        )


def _token_lists() -> Iterator[tuple[WireMessage, bytes]]:
    owner = DescribeDelegationTokenOwner(principal_type="User", principal_name="eve")
    yield (
        DescribeDelegationTokenRequest(owners=[owner]),
        int32(1) + string("User") + string("eve"),
    )
    yield DescribeDelegationTokenRequest(owners=None), int32(-1)
    renewer = DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")
    token = DescribedDelegationToken(
        principal_type="User",
        principal_name="eve",
        issue_timestamp=1,
        expiry_timestamp=2,
        max_timestamp=3,
        token_id="id",
        hmac=b"h",
        renewers=[renewer],
    )
    yield (
        DescribeDelegationTokenResponse(tokens=[token], throttle_time_ms=4),
        b"".join(
            [
                int16(0) + int32(1) + string("User") + string("eve"),
                int64(1) + int64(2) + int64(3) + string("id") + int32(1) + b"h",
                int32(1) + string("User") + string("bob"),
                int32(4),
            ]
        ),
    )


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
