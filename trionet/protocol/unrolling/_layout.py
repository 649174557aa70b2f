"""The layout of a message: its fields, by version.

A message class declares its layout in the notation of Kafka's message definitions, one line per
field in the order on the wire::

    topics [MetadataRequestTopic] null=1+
    include_topic_authorized_operations bool 8+

These are the name, the type (brackets mark an array), and the versions that have the field: all of
them, an open range or ``3-7``. ``null`` marks a nullable field, ``tag=N`` a tagged field (KIP-482),
and ``ignorable`` a request field whose value may be dropped in a version without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from .._wire import NO_UUID, Message

#: The kinds of fixed size, with their ``struct`` format characters.
CODES: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
_SIZED: Final = ("string", "bytes", "records")


@attrs.frozen
class Field:
    """A field of a struct in one version.

    Attributes:
        name: the name of the field.
        kind: a key of :data:`CODES`, ``string``, ``bytes``, ``records`` or ``struct``.
        array: whether it is an array of that kind.
        nullable: whether null is a valid value.
        tag: the number of a tagged field; None for other fields.
        default: the default value, as source code.
        struct: the layout of a struct or of the elements of an array of structs; None for others.
    """

    name: str
    kind: str
    array: bool
    nullable: bool
    tag: int | None
    default: str
    struct: Struct | None


@attrs.frozen
class Struct:
    """A struct in one version.

    Attributes:
        name: the name of the message class.
        flexible: whether it has compact lengths and a tag section (KIP-482).
        fields: the fields in the order on the wire.
        absent: the fields that this version lacks, with their defaults.
        required: those absent fields that must have their default values when encoded.
        sometimes_null: the fields that are nullable in some version.
    """

    name: str
    flexible: bool
    fields: tuple[Field, ...]
    absent: tuple[tuple[str, str], ...] = ()
    required: tuple[tuple[str, str], ...] = ()
    sometimes_null: frozenset[str] = frozenset()

    @property
    def untagged(self) -> tuple[Field, ...]:
        """The fields outside the tag section."""
        return tuple(field for field in self.fields if field.tag is None)

    @property
    def tagged(self) -> tuple[Field, ...]:
        """The fields in the tag section, by ascending tag."""
        found = [field for field in self.fields if field.tag is not None]
        return tuple(sorted(found, key=lambda field: field.tag or 0))

    def inner_first(self) -> Iterator[Struct]:
        """Yield this struct and those in its fields, each after those that it contains."""
        seen: dict[str, Struct] = {}
        _collect(self, seen)
        yield from seen.values()


def _collect(struct: Struct, seen: dict[str, Struct]) -> None:
    for field in struct.fields:
        if field.struct is not None:
            _collect(field.struct, seen)
    seen.setdefault(struct.name, struct)


def layout_of(
    made: type[Message], names: dict[str, Any], version: int, *, flexible: bool, is_request: bool
) -> Struct:
    """Return the layout of a message in one version.

    Args:
        made: the class of the message.
        names: the classes of the structs that it contains, by name.
        version: the version.
        flexible: whether the version is flexible.
        is_request: whether fields that the version lacks must have their defaults.
    """
    prototype = made()
    fields = []
    absent = []
    required = []
    sometimes_null = []
    for line in made._layout:  # noqa: SLF001 -- of the generated classes
        name, kind, *options = line.split()
        default = _source_of(getattr(prototype, name))
        nullable, tag, ignorable, present = False, None, not is_request, True
        for option in options:
            word, _, value = option.partition("=")
            if word == "null":
                nullable = _has(value or "0+", version)
                sometimes_null.append(name)
            elif word == "tag":
                tag = int(value)
            elif word == "ignorable":
                ignorable = True
            else:
                present = _has(word, version)
        if not present:
            absent.append((name, default))
            if not ignorable:
                required.append((name, default))
            continue
        array = kind.startswith("[")
        kind = kind.strip("[]")
        struct = None
        if kind not in CODES and kind not in _SIZED:
            struct = layout_of(
                names[kind], names, version, flexible=flexible, is_request=is_request
            )
            kind = "struct"
        fields.append(Field(name, kind, array, nullable, tag, default, struct))
    return Struct(
        made.__name__,
        flexible,
        tuple(fields),
        tuple(absent),
        tuple(required),
        frozenset(sometimes_null),
    )


def _has(versions: str, version: int) -> bool:
    first, open_ended, _ = versions.partition("+")
    if open_ended:
        return version >= int(first)
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)


def _source_of(default: Any) -> str:
    if default == NO_UUID and isinstance(default, bytes):
        return "NO_UUID"
    if isinstance(default, Message):
        return f"{type(default).__name__}()"
    return {"''": '""', "b''": 'b""'}.get(repr(default), repr(default))
