"""Changes responses: any field to any value of its type, arrays to other ones, bytes at random."""

from __future__ import annotations

import copy
import importlib
import random
import struct
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple

from protocol.kio_values import codec_functions
from protocol.mutations import mutate
from protocol.samples import api_of, random_message
from support.field_extremes import integers, values_of
from support.hostile_batches import changed
from trionet.errors import TrionetError
from trionet.protocol._codec import ApiVersionCodec
from trionet.protocol._wire import Chunk
from trionet.protocol.messages.registry import APIS
from trionet.protocol.records._batch import read_header
from trionet.protocol.unrolling._layout import CODES, Field, Struct

#: Offsets and numbers of partitions that no broker has.
_ODD_NUMBERS: Final = (-500, -5, -3, 2, 3, 5, 100, 4096, 1_000_000)
#: After the newest error of Kafka's.
_ERROR_CODES_END: Final = 135
_BATCH_FIELDS: Final = {
    "base_offset": 64,
    "length": 32,
    "leader_epoch": 32,
    "attributes": 16,
    "last_offset_delta": 32,
    "base_timestamp": 64,
    "max_timestamp": 64,
    "producer_id": 64,
    "producer_epoch": 16,
    "base_sequence": 32,
    "count": 32,
}
#: What a group's members tell each other through the coordinator, by the field that holds it.
_EMBEDDED: Final = {
    "assignment": "consumer_protocol_assignment",
    "metadata": "consumer_protocol_subscription",
}


class Place(NamedTuple):
    """A field of a message or of a struct in it."""

    path: str
    owner: Any
    field: Field


class Change(NamedTuple):
    """A changed response.

    Attributes:
        body: what follows the response's header.
        description: what was changed.
    """

    body: bytes
    description: str


def change_response(
    codec: ApiVersionCodec, body: bytes, rng: random.Random, kept: Collection[str] = ()
) -> Change:
    """Change one to three things about a response.

    Args:
        codec: of its API and version.
        body: the response without its header.
        rng: decides what is changed, and to what.
        kept: the names of fields that are not changed.
    """
    name = f"{codec.name} v{codec.version}"
    kind = rng.random()
    if kind < 0.05:
        return Change(mutate(body, rng), f"{name}: bytes")
    layout = response_layout(codec)
    if kind < 0.1 and not (kept and has_any(layout, kept)):
        return any_response(codec, rng)
    message = codec.decode_response(body, 0)
    for _, owner, field in _places(layout, message, ""):
        if isinstance(records := getattr(owner, field.name), memoryview):
            setattr(owner, field.name, bytes(records))  # a view has no deep copy
    made = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _changeable(layout, message, kept)
        if places:
            made.append(_change(rng.choice(places), rng, kept))
    return Change(encoded_response(codec, message), f"{name}: {', '.join(made)}")


def has_any(layout: Struct, names: Collection[str]) -> bool:
    """Whether a message has a field with one of these names."""
    return any(field.name in names for each in layout.inner_first() for field in each.fields)


def any_response(codec: ApiVersionCodec, rng: random.Random) -> Change:
    """A response with every field random."""
    module = importlib.import_module(f"trionet.protocol.messages.{APIS[codec.api_key][0]}")
    message = random_message(response_layout(codec), module, rng)
    description = f"{codec.name} v{codec.version}: everything"
    return Change(encoded_response(codec, message), description)


def response_layout(codec: ApiVersionCodec) -> Struct:
    """The fields of an API's responses in a version."""
    messages = api_of(APIS[codec.api_key][0]).messages.values()
    [response] = [each for each in messages if each.side == "response"]
    return response.versions[codec.version]


def encoded_response(codec: ApiVersionCodec, message: Any) -> bytes:
    """The bytes of a response without its header."""
    chunks: list[Chunk] = []
    codec.encode_response(message, chunks)
    return b"".join(bytes(each) for each in chunks if isinstance(each, bytes | memoryview))


def _places(layout: Struct, owner: Any, path: str) -> Iterator[Place]:
    for field in layout.fields:
        at = f"{path}.{field.name}".lstrip(".")
        yield Place(at, owner, field)
        value = getattr(owner, field.name)
        if field.struct is None or value is None:
            continue
        if not field.array:
            yield from _places(field.struct, value, at)
            continue
        for number, each in enumerate(value):
            yield from _places(field.struct, each, f"{at}[{number}]")


def _changeable(layout: Struct, owner: Any, kept: Collection[str]) -> list[Place]:
    return [each for each in _places(layout, owner, "") if each.field.name not in kept]


def _change(place: Place, rng: random.Random, kept: Collection[str] = ()) -> str:
    path, owner, field = place
    value = getattr(owner, field.name)
    if field.array:
        value = _array(field, value, rng, kept)
    elif field.struct is not None:
        value = _struct(field, value, rng, kept)
    else:
        value = _value(field, value, rng)
    setattr(owner, field.name, value)
    return f"{path} = {_shortened(value)}"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:60]}... ({len(text)})"


def _array(
    field: Field, value: list[Any] | None, rng: random.Random, kept: Collection[str]
) -> list[Any] | None:
    """Without some, with some twice, in another order, with one that is changed."""
    found = list(value or [])
    made: list[Callable[[], list[Any] | None]] = [list]
    if field.nullable:
        made.append(lambda: None)
    if field.struct is None:
        made.append(lambda: [*found, _value(field, found[0] if found else None, rng)])
    if found:
        one = rng.choice(found)
        made += [
            lambda: [*found, *copy.deepcopy(found)],
            lambda: [*found, *[copy.deepcopy(one) for _ in range(100)]],
            lambda: [each for each in found if each is not one],
            lambda: found[::-1],
            lambda: rng.sample(found, len(found)),
            lambda: _with_another(field, found, one, rng, kept),
        ]
    return rng.choice(made)()


def _with_another(
    field: Field, found: list[Any], one: Any, rng: random.Random, kept: Collection[str]
) -> list[Any]:
    if field.struct is None:
        return [_value(field, one, rng) if each is one else each for each in found]
    another = copy.deepcopy(one)
    _change(rng.choice(_changeable(field.struct, another, kept)), rng, kept)
    return [*found, another]


def _struct(field: Field, value: Any, rng: random.Random, kept: Collection[str]) -> Any:
    if field.nullable and rng.random() < 0.5:
        return None
    if value is not None and field.struct is not None:
        _change(rng.choice(_changeable(field.struct, value, kept)), rng, kept)
    return value


def _value(field: Field, value: Any, rng: random.Random) -> Any:
    if field.name in {"error_code", "partition_error_code"} and rng.random() < 0.8:
        return rng.randrange(-1, _ERROR_CODES_END)
    if field.kind == "records" and value and rng.random() < 0.9:
        return _records(bytes(value), rng)
    if field.kind == "bytes" and value and rng.random() < 0.8:
        return _bytes(field, bytes(value), rng)
    if field.kind == "float64":
        return rng.choice((0.0, -1.0, 1e308, float("nan"), float("inf")))
    if field.kind in CODES and field.kind not in {"bool", "uuid"}:
        return _number(field, value, rng)
    return rng.choice(list(values_of(field)))


def _number(field: Field, value: int | None, rng: random.Random) -> int:
    bits = 8 * struct.calcsize(f">{CODES[field.kind]}")
    allowed = range(-(2 ** (bits - 1)), 2 ** (bits - 1))
    if CODES[field.kind].isupper():
        allowed = range(2**bits)
    near = (value or 0) + rng.choice((-2, -1, 1, 2, 1000))
    numbers = [*integers(bits), *_ODD_NUMBERS, near, near]
    return rng.choice([each for each in numbers if each in allowed])


def _records(records: bytes, rng: random.Random) -> bytes:
    """With a header that says something else, bytes that are changed, or an end that is missing."""
    kind = rng.random()
    if kind < 0.15:
        return mutate(records, rng)
    if kind < 0.25:
        return records[: rng.randrange(len(records))]
    try:
        read_header(records)
    except TrionetError:
        return mutate(records, rng)
    if kind < 0.3:
        return records * 3
    name = rng.choice(list(_BATCH_FIELDS))
    bits = _BATCH_FIELDS[name]
    fields = {name: rng.choice([*integers(bits), 2, 5, 7])}
    return changed(records, **fields)


def _bytes(field: Field, value: bytes, rng: random.Random) -> bytes:
    """What a member says of its subscription or assignment, changed in its fields, or any bytes."""
    if field.name not in _EMBEDDED or rng.random() < 0.3:
        return mutate(value, rng)
    [message] = api_of(_EMBEDDED[field.name]).messages.values()
    version = int.from_bytes(value[:2], "big", signed=True)
    if version not in message.versions:
        return mutate(value, rng)
    module = importlib.import_module(f"trionet.protocol.messages.{_EMBEDDED[field.name]}")
    decode, encode = codec_functions(module, message, version)
    try:
        content = decode(value, 2)
    except TrionetError:
        return mutate(value, rng)
    _change(rng.choice(list(_places(message.versions[version], content, ""))), rng)
    chunks: list[bytes] = [value[:2]]
    encode(content, chunks)
    return b"".join(chunks)
