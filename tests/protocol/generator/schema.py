"""The model of one message at one version, read from kio's dataclasses."""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from dataclasses import Field as KioField
from datetime import timedelta
from enum import IntEnum

import attrs

from trionet.protocol.unrolling._layout import CODES, Field, Struct

from .apis import NULL_BY_DEFAULT
from .old import CHANGES, FIRST_VERSIONS, Change

#: kio's type names to ours; times and error codes are plain integers on our side.
KINDS = {
    "bool": "bool",
    "int8": "int8",
    "int16": "int16",
    "uint16": "uint16",
    "int32": "int32",
    "int64": "int64",
    "float64": "float64",
    "uuid": "uuid",
    "string": "string",
    "bytes": "bytes",
    "records": "records",
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}

#: What a field is before anybody sets it, unless the schema says otherwise.
IMPLICIT = {
    "bool": "False",
    "float64": "0.0",
    "uuid": "NO_UUID",
    "string": '""',
    "bytes": 'b""',
}


@dataclass(frozen=True)
class Message:
    """All versions of one request, response or data message."""

    name: str
    side: str
    versions: dict[int, Struct]

    def structs(self) -> Iterator[tuple[int, Struct]]:
        """Every struct of every version, inner ones first."""
        for version, top in self.versions.items():
            for struct in top.inner_first():
                yield version, struct


@dataclass(frozen=True)
class Api:
    """One API, or one data message (``key`` is None)."""

    module: str
    key: int | None
    messages: dict[str, Message]

    @property
    def name(self) -> str:
        """Kafka's name, as in ``ListOffsets``."""
        if "request" in self.messages:
            return self.messages["request"].name.removesuffix("Request")
        return self.messages["data"].name

    @property
    def versions(self) -> list[int]:
        """Its versions, in ascending order."""
        versions = [sorted(message.versions) for message in self.messages.values()]
        assert all(each == versions[0] for each in versions), self.module
        return versions[0]

    @property
    def first_flexible(self) -> int | None:
        """The first version with tags and compact lengths (KIP-482); None where none has them."""
        found = [
            [v for v in self.versions if message.versions[v].flexible]
            for message in self.messages.values()
        ]
        assert all(each == self.versions[len(self.versions) - len(each) :] for each in found)
        assert all(each == found[0] for each in found), self.module
        return found[0][0] if found[0] else None


def load_api(module: str) -> Api:
    """Every version of ``module`` (kio's snake-case name): kio's, and those before them."""
    package = importlib.import_module(f"kio.schema.{module}")
    versions = sorted(
        int(info.name[1:]) for info in pkgutil.iter_modules(package.__path__) if info.ispkg
    )
    sides: dict[str, dict[int, type]] = {}
    for version in versions:
        inner = importlib.import_module(f"kio.schema.{module}.v{version}")
        for info in pkgutil.iter_modules(inner.__path__):
            sides.setdefault(info.name, {})[version] = _top_class(
                importlib.import_module(f"{inner.__name__}.{info.name}")
            )
    clashes = _clashes(sides)
    messages = {
        side: Message(
            next(iter(tops.values())).__name__,
            side,
            {version: _struct(top, side, clashes) for version, top in tops.items()},
        )
        for side, tops in sorted(sides.items())
    }
    for message in messages.values():
        _add_old_versions(message, FIRST_VERSIONS.get(module, versions[0]))
    key = getattr(next(iter(next(iter(sides.values())).values())), "__api_key__", None)
    return Api(module, None if key is None else int(key), messages)


def _add_old_versions(message: Message, first: int) -> None:
    for version in range(min(message.versions) - 1, first - 1, -1):
        change = CHANGES.get((message.name, version), Change())
        unused = set(change.lacks | change.has.keys())
        following = message.versions[version + 1]
        message.versions[version] = _older(following, change, unused)
        assert not unused, unused


def _older(struct: Struct, change: Change, unused: set[str]) -> Struct:
    """The struct one version before; takes what it used of ``change`` out of ``unused``."""
    parts: list[Field] = []
    for field in struct.fields:
        if f"{struct.name}.{field.name}" in change.lacks:
            unused.discard(f"{struct.name}.{field.name}")
            continue
        inner = field.struct and _older(field.struct, change, unused)
        parts.append(attrs.evolve(field, struct=inner))
    old = change.has.get(struct.name)
    if old is not None:
        unused.discard(struct.name)
        place = [part.name for part in parts].index(old.after) + 1
        parts.insert(place, Field(old.name, old.kind, old.array, False, None, old.default, None))
    assert not struct.flexible, struct.name
    return Struct(struct.name, False, tuple(parts))


def _top_class(module: types.ModuleType) -> type:
    """kio writes inner structs first, so the message itself is the last dataclass."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ][-1]


def _clashes(sides: dict[str, dict[int, type]]) -> frozenset[str]:
    """Struct names that both the request and the response use, for different things."""
    names = [
        {name for top in tops.values() for name in _names_below(top)} for tops in sides.values()
    ]
    return frozenset(names[0] & names[1]) if len(names) == 2 else frozenset()


def _names_below(top: type) -> Iterator[str]:
    for field in fields(top):
        inner = _inner_type(field)[0]
        if is_dataclass(inner):
            yield inner.__name__
            yield from _names_below(inner)


def _inner_type(field: KioField[object]) -> tuple[type, bool, bool]:
    """The element type of a kio field, whether it is an array, and whether null is a value."""
    kind = typing.cast(type, field.type)
    nullable = False
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        (kind,) = (arg for arg in typing.get_args(kind) if arg is not types.NoneType)
        nullable = True
    array = typing.get_origin(kind) is tuple
    if array:
        kind = typing.get_args(kind)[0]
        if typing.get_origin(kind) in (types.UnionType, typing.Union):
            (kind,) = (arg for arg in typing.get_args(kind) if arg is not types.NoneType)
    return kind, array, nullable


def _struct(top: type, side: str, clashes: frozenset[str]) -> Struct:
    name = top.__name__
    if name in clashes:
        name = side.capitalize() + name
    flexible = bool(getattr(top, "__flexible__"))  # noqa: B009 (kio's attribute, set at run time)
    parts = tuple(_field(name, field, side, clashes) for field in fields(top))
    assert flexible or not any(part.tag is not None for part in parts), name
    return Struct(name, flexible, parts)


def _field(owner: str, field: KioField[object], side: str, clashes: frozenset[str]) -> Field:
    inner, array, nullable = _inner_type(field)
    kafka_type = field.metadata.get("kafka_type")
    tag = field.metadata.get("tag")
    name = field.name
    struct = None
    if kafka_type is None:
        kind = "struct"
        struct = _struct(inner, side, clashes)
        # An element of no bytes would let a peer ask for any number of them.
        assert not array or struct.flexible or struct.fields, name
    else:
        kind = KINDS[kafka_type]
        if kafka_type.startswith(("timedelta", "datetime")):
            name += "_ms"  # kio drops the unit when it turns milliseconds into a time type
        if kind in CODES and not array:
            nullable = False  # kio's None stands for the zero UUID, or for the time -1
    default = _default(field, kind, array, nullable, tag, struct)
    if nullable and (owner, name) in NULL_BY_DEFAULT:
        default = "None"
    return Field(name, kind, array, nullable, tag, default, struct)


def _default(
    field: KioField[object],
    kind: str,
    array: bool,
    nullable: bool,
    tag: int | None,
    struct: Struct | None,
) -> str:
    value = field.default
    if kind == "struct" and not array:
        if nullable or tag is not None:
            return "None"  # absent: for a tagged struct the same as all its defaults
        assert struct is not None
        return f"{struct.name}()"
    if value is MISSING and kind == "records":
        return "None" if nullable else 'b""'
    if value is MISSING:
        return "[]" if array else IMPLICIT.get(kind, "0")
    if value is None:
        return {"uuid": "NO_UUID", "int64": "-1"}.get("" if array else kind, "None")
    if value == ():
        return "[]"
    if isinstance(value, timedelta):
        return repr(value // timedelta(milliseconds=1))
    if isinstance(value, IntEnum):
        return repr(int(value))
    if isinstance(value, str):
        return f'"{value}"'
    assert isinstance(value, (bool, int)), (field.name, value)
    return repr(value)
