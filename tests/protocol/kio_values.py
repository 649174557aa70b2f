"""Random kio entities, and the same values as messages of ours."""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import random
import types
import typing
import uuid
from dataclasses import fields, is_dataclass
from io import BytesIO
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from protocol.generator.schema import Message
from trionet.protocol.unrolling._layout import Struct

_MILLISECOND = datetime.timedelta(milliseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXTS = ("", "a", "topic-1", "Zürich", "日本", "x" * 126, "x" * 127, "y" * 128, "z" * 300)
COUNTS = (0, 1, 1, 2, 3)


def has_version(module: str, version: int) -> bool:
    """Whether kio has this version of an API; it lacks those that Kafka 4.0 removed (KIP-896)."""
    return importlib.util.find_spec(f"kio.schema.{module}.v{version}") is not None


def entity_class(module: str, version: int, side: str) -> type:
    """kio's class of one message at one version."""
    inner = importlib.import_module(f"kio.schema.{module}.v{version}.{side}")
    return [
        value
        for value in vars(inner).values()
        if isinstance(value, type) and value.__module__ == inner.__name__
    ][-1]


def random_entity(cls: Any, rng: random.Random) -> Any:
    """An instance of a kio dataclass, every field random."""
    return cls(**{field.name: _random_field(field, rng) for field in fields(cls)})


def _random_field(field: Any, rng: random.Random) -> Any:
    kind, nullable = _strip_none(field.type)
    kafka_type = field.metadata.get("kafka_type")
    if "tag" in field.metadata and rng.random() < 0.5:
        return field.default
    if nullable and rng.random() < 0.3:
        return None
    if typing.get_origin(kind) is tuple:
        inner = _strip_none(typing.get_args(kind)[0])[0]
        count = 140 if rng.random() < 0.01 else rng.choice(COUNTS)
        return tuple(_random_value(inner, kafka_type, rng) for _ in range(count))
    return _random_value(kind, kafka_type, rng)


def _strip_none(kind: Any) -> tuple[Any, bool]:
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        (kind,) = (arg for arg in typing.get_args(kind) if arg is not types.NoneType)
        return kind, True
    return kind, False


def _random_value(kind: Any, kafka_type: str | None, rng: random.Random) -> Any:
    if is_dataclass(kind):
        return random_entity(kind, rng)
    if kafka_type in _INTEGERS:
        return random_integer(_INTEGERS[kafka_type], rng)
    if kafka_type == "uint16":
        return rng.randrange(65536)
    if kafka_type == "bool":
        return rng.random() < 0.5
    if kafka_type == "float64":
        return rng.uniform(-1e9, 1e9)
    if kafka_type == "string":
        return rng.choice(TEXTS)
    if kafka_type in ("bytes", "records"):
        return rng.randbytes(rng.choice((0, 1, 16, 126, 127, 128, 400)))
    if kafka_type == "uuid":
        return uuid.UUID(bytes=rng.randbytes(16))
    if kafka_type == "error_code":
        return rng.choice(list(ErrorCode))
    if kafka_type == "timedelta_i32":
        return random_integer(32, rng) * _MILLISECOND
    if kafka_type == "timedelta_i64":
        return rng.randrange(-(10**12), 10**12) * _MILLISECOND
    assert kafka_type == "datetime_i64", kafka_type
    return _EPOCH + rng.randrange(4 * 10**12) * _MILLISECOND


def random_integer(bits: int, rng: random.Random) -> int:
    """An integer of that many bits: often a small or an extreme one."""
    top = 2 ** (bits - 1)
    return rng.choice((0, 1, -1, top - 1, -top, rng.randrange(-top, top)))


def write_entity(entity: Any) -> bytes:
    """What kio puts on the wire."""
    with BytesIO() as buffer:
        entity_writer(type(entity))(buffer, entity)
        return buffer.getvalue()


def read_entity(cls: Any, data: bytes) -> Any:
    """What kio makes of bytes, which must be one whole entity."""
    entity, size = entity_reader(cls)(data, 0)
    assert size == len(data)
    return entity


def to_message(entity: Any, struct: Struct, module: types.ModuleType) -> Any:
    """The same values as an instance of our class."""
    values: dict[str, object] = {}
    for theirs, ours in zip(fields(entity), struct.fields, strict=True):
        value = getattr(entity, theirs.name)
        tagged_struct = ours.struct is not None and ours.tag is not None and not ours.array
        if tagged_struct and value == theirs.default:
            value = None  # ours says so for a tagged struct that is all defaults
        values[ours.name] = _to_value(value, theirs, ours.struct, module)
    return getattr(module, struct.name)(**values)


def _to_value(value: Any, theirs: Any, struct: Struct | None, module: types.ModuleType) -> Any:
    if isinstance(value, tuple):
        return [_to_value(item, theirs, struct, module) for item in value]
    if value is None:
        whole = typing.get_origin(_strip_none(theirs.type)[0]) is tuple
        kafka_type = "" if whole else theirs.metadata.get("kafka_type")
        return {"uuid": bytes(16), "datetime_i64": -1}.get(kafka_type)
    if struct is not None:
        return to_message(value, struct, module)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, datetime.timedelta):
        return value // _MILLISECOND
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // _MILLISECOND
    return int(value) if isinstance(value, ErrorCode) else value


def codec_functions(module: types.ModuleType, message: Message, version: int) -> tuple[Any, Any]:
    """Our (decode, encode) of one message at one version."""
    table = {"request": "REQUESTS", "response": "RESPONSES", "data": "MESSAGES"}[message.side]
    codecs = getattr(module, table)
    if version not in codecs:
        package, _, name = module.__name__.rpartition(".")
        codecs = getattr(importlib.import_module(f"{package}.older.{name}"), table)
    pair: tuple[Any, Any] = codecs[version]
    return pair
