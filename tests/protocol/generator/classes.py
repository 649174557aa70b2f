"""One class per struct, over all versions of its message."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from trionet.protocol.unrolling._layout import Field, Struct
from trionet.protocol.unrolling._source import WIDTH, Lines

from .apis import IGNORABLE
from .lines import wrapped
from .meanings import MEANINGS
from .schema import Message

#: The Python type of a single value of each kind.
PYTHON = {
    "bool": "bool",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
}


@dataclass
class Merged:
    """A field over all versions that have it."""

    field: Field
    versions: list[int]
    nullable: list[int]
    side: str
    ignorable: bool


def merge(message: Message) -> dict[str, list[Merged]]:
    """For each struct name, inner structs first, its fields over all versions in wire order."""
    merged: dict[str, list[Merged]] = {}
    for version, struct in sorted(message.structs(), key=lambda found: -found[0]):
        _add(merged.setdefault(struct.name, []), struct, version, message.side)
    order: list[str] = []
    for version in sorted(message.versions, reverse=True):
        order += [each.name for each in message.versions[version].inner_first()]
    return {name: merged[name] for name in dict.fromkeys(order)}


def _add(known: list[Merged], struct: Struct, version: int, side: str) -> None:
    """Add an older version's fields, each new one after the field it follows there."""
    place = 0
    for field in struct.fields:
        names = [each.field.name for each in known]
        if field.name in names:
            place = names.index(field.name)
            each = known[place]
            assert (each.field.kind, each.field.array) == (field.kind, field.array), field
            assert each.field.default == field.default, field
            each.versions.insert(0, version)
            each.nullable[:0] = [version] * field.nullable
            assert each.field.tag == field.tag, field
        else:
            ignorable = side != "request" or (struct.name, field.name) in IGNORABLE
            nullable = [version] * field.nullable
            known.insert(place, Merged(field, [version], nullable, side, ignorable))
        place += 1
    present = {field.name for field in struct.fields}
    assert [each.field.name for each in known if each.field.name in present] == [
        field.name for field in struct.fields
    ]


def missing_fields(
    merged: dict[str, list[Merged]], struct: Struct, ignorable: bool | None
) -> list[tuple[str, str]]:
    """The fields that ``struct``'s version lacks, with their defaults.

    Args:
        ignorable: only those that may (True) or may not (False) vanish; None for all.
    """
    present = {field.name for field in struct.fields}
    return [
        (each.field.name, each.field.default)
        for each in merged[struct.name]
        if each.field.name not in present and (ignorable is None or each.ignorable == ignorable)
    ]


def class_text(name: str, what: str, fields: list[Merged], versions: list[int]) -> str:
    """The source of the class, with ``what`` as its docstring and ``versions`` having it."""
    write = Lines()
    with write.indented(f"class {name}(Message):"):
        _docstring(write, name, what, fields)
        write("")
        names = [f'"{each.field.name}"' for each in fields]
        _tuple(write, "__slots__", [*names, '"unknown_tags"'])
        layout = [f'"{_layout(each, versions)}"' for each in fields]
        if layout:
            _tuple(write, "_layout", layout)
        uuids = [f'"{each.field.name}"' for each in fields if each.field.kind == "uuid"]
        if uuids:
            _tuple(write, "_uuids", uuids)
        write("")
        with write.indented("def __init__("):
            write("self,")
            write("*,")
            for each in fields:
                comment = "" if each.versions == versions else f"  # {span(each.versions)}"
                write(f"{each.field.name}: {_parameter(each)},{comment}")
            write("unknown_tags: tuple[tuple[int, bytes], ...] = (),")
        with write.indented(") -> None:"):
            for each in fields:
                write(f"self.{each.field.name}: {_type(each)} = {_initial(each)}")
            write("self.unknown_tags: tuple[tuple[int, bytes], ...] = unknown_tags")
    return "\n".join(line.rstrip() for line in wrapped(write.text()).split("\n"))


def _layout(each: Merged, versions: list[int]) -> str:
    """A field in the notation of `trionet.protocol.unrolling._layout`."""
    field = each.field
    kind = field.struct.name if field.struct else field.kind
    words = [field.name, f"[{kind}]" if field.array else kind]
    if each.versions != versions:
        words.append(_range(each.versions, versions))
    if each.nullable:
        same = each.nullable == each.versions
        words.append("null" if same else f"null={_range(each.nullable, versions)}")
    if field.tag is not None:
        words.append(f"tag={field.tag}")
    if each.versions != versions and each.side == "request" and each.ignorable:
        words.append("ignorable")
    return " ".join(words)


def _range(some: list[int], versions: list[int]) -> str:
    assert some == list(range(some[0], some[-1] + 1)), some
    return f"{some[0]}+" if some[-1] == versions[-1] else f"{some[0]}-{some[-1]}"


def _docstring(write: Lines, name: str, what: str, fields: list[Merged]) -> None:
    meanings = [
        (each.field.name, meaning)
        for each in fields
        if (meaning := meaning_of(name, each.field.name)) is not None
    ]
    if not meanings:
        write(f'"""{what}."""')
        return
    write(f'"""{what}.')
    write("")
    write("Attributes:")
    for field, meaning in meanings:
        # Inside the class and below "Attributes:" are two levels of four columns each.
        for line in textwrap.wrap(
            f"{field}: {meaning}.", WIDTH - 8, initial_indent="    ", subsequent_indent=" " * 8
        ):
            write(line)
    write('"""')


def meaning_of(struct: str, field: str) -> str | None:
    """What a field means, where its name does not say it."""
    return MEANINGS.get(f"{struct}.{field}", MEANINGS.get(field))


def span(versions: list[int]) -> str:
    """``v3``, ``v3-7``, or ``v3-7, v9`` for versions in ascending order."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][1] == version - 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(f"v{a}" if a == b else f"v{a}-{b}" for a, b in runs)


def _tuple(write: Lines, name: str, parts: list[str]) -> None:
    text = f"{name} = ({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if len(text) <= 96:
        write(text)
        return
    with write.indented(f"{name} = ("):
        for part in parts:
            write(f"{part},")
    write(")")


def _type(each: Merged) -> str:
    field = each.field
    if field.struct is not None:
        kind = field.struct.name
    elif field.kind == "records":
        return _records_type(each.side, bool(each.nullable))
    else:
        kind = PYTHON.get(field.kind, "int")
    if field.array:
        kind = f"list[{kind}]"
    absent = field.struct is not None and field.tag is not None and not field.array
    return f"{kind} | None" if each.nullable or absent else kind


def _records_type(side: str, nullable: bool) -> str:
    if side == "request":
        assert nullable, "_wire.py has no name for records of a request that are always there"
        return "Records"
    return "RecordsChunk" if nullable else "Chunk"


def _needs_fresh(each: Merged) -> bool:
    return each.field.default == "[]" or each.field.default.endswith("()")


def _parameter(each: Merged) -> str:
    return f"{_type(each)} = {'UNSET' if _needs_fresh(each) else each.field.default}"


def _initial(each: Merged) -> str:
    name = each.field.name
    if not _needs_fresh(each):
        return name
    return f"{each.field.default} if {name} is UNSET else {name}"
