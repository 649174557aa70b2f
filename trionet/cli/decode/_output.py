"""Writes entries to standard output: as text, in colour on a terminal, or as JSON documents."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from trionet._util._text import printable, quoted

from ..terminal._streams import discard_output
from ._tree import PROBLEM, Blob, Entry, Meant, Tree

_STYLES: Final = {
    "title": "bold cyan",
    "name": "blue",
    "number": "magenta",
    "text": "green",
    "meaning": "yellow",
    "problem": "bold red",
}


def write_entries(entries: Iterable[Entry], bytes_shown: int | None, *, as_json: bool) -> bool:
    """Write entries as text or JSON lines, and return whether all entries are valid.

    Output is flushed after each entry, because the input may be a pipe with long pauses. If its
    reader exits, no more entries are read.

    Args:
        entries: the entries.
        bytes_shown: the maximum number of bytes or characters shown per value; None for all.
        as_json: whether to write each entry as a JSON document on its own line.
    """
    is_valid = True
    write = None if as_json else _line_writer()
    for entry in entries:
        is_valid = is_valid and entry.problem is None
        try:
            if write is None:
                print(json.dumps(document(entry, bytes_shown)))
            else:
                for line in entry_lines(entry, bytes_shown):
                    write(line)
            sys.stdout.flush()
        except BrokenPipeError:
            if is_valid:
                raise
            discard_output()
            break
    return is_valid


def _line_writer() -> Callable[[Line], None]:
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        return lambda line: print("".join(part.text for part in line))
    from rich.text import Text

    from trionet._util._console import PipedConsole

    console = PipedConsole(highlight=False)

    def write(line: Line) -> None:
        text = Text.assemble(*((part.text, _STYLES.get(part.style, "")) for part in line))
        console.print(text, soft_wrap=True)

    return write


#: The maximum width of a line that shows several fields or items.
COLUMNS: Final = 120

#: The kinds of entries that are not frames: their fields are those of the body, and of no header.
_STORED: Final = {"batch", "message"}

#: An array is put on one line only if none of its structs has more fields than this.
_INLINE_FIELDS: Final = 3

_INDENT: Final = "  "


class Part(NamedTuple):
    """A styled part of a line.

    Attributes:
        text: the text, safe to print.
        style: ``title``, ``name``, ``number``, ``text``, ``meaning``, ``problem``, or empty.
    """

    text: str
    style: str = ""


Line = list[Part]


def entry_lines(entry: Entry, bytes_shown: int | None) -> Iterator[Line]:
    """Yield the lines of an entry, followed by an empty line.

    Args:
        entry: the entry.
        bytes_shown: the maximum number of bytes or characters shown per value; None for all.
    """
    yield [Part(_title(entry), "title"), Part(f", {entry.size} bytes at {entry.offset}")]
    if entry.about.get("ambiguous"):
        text = "several versions fit but decode differently; choose one with --response API:VERSION"
        yield [Part(f"{_INDENT}{text}", "problem")]
    lines = _Lines(bytes_shown)
    for name, fields in (("header", entry.header), ("body", entry.body)):
        if fields is not None and entry.kind in _STORED:
            yield from lines.fields(fields, 1)
        elif fields:
            yield from lines.field(name, fields, 1)
        elif fields is not None:
            yield [Part(_INDENT), Part(name, "name"), Part(": no fields")]
    if entry.problem is not None:
        what = "truncated" if entry.problem.text.startswith("truncated") else "malformed"
        text = entry.problem.text.removeprefix("truncated: ")
        yield [
            Part(f"{_INDENT}{what} at byte {entry.problem.offset}: {printable(text)}", "problem")
        ]
    yield []


def _title(entry: Entry) -> str:
    title = f"#{entry.number} {entry.kind}"
    about = entry.about
    if "api" in about:
        version = f" v{about['version']}" if "version" in about else ""
        title += f" {about['api']}{version} (key {about['api_key']})"
    if "answers" in about:
        title += f", response to #{about['answers']}"
    fitting = about.get("fitting_versions")
    if isinstance(fitting, list):
        title += f", fits versions {', '.join(map(str, fitting))}"
    return title


class _Lines:
    def __init__(self, bytes_shown: int | None) -> None:
        self._bytes_shown = bytes_shown

    def fields(self, fields: dict[str, Tree], depth: int) -> Iterator[Line]:
        for name, value in fields.items():
            yield from self.field(name, value, depth)

    def field(self, name: str, value: Tree, depth: int) -> Iterator[Line]:
        """Yield the lines of a field."""
        if name == PROBLEM and isinstance(value, str):
            yield [Part(f"{_INDENT * depth}{PROBLEM}: {printable(value)}", "problem")]
            return
        head = [Part(_INDENT * depth), Part(name, "name"), Part(": ")]
        width = COLUMNS - _width(head)
        if (short := self._short(value, width)) is not None:
            yield head + short
        elif isinstance(value, dict):
            yield head[:2]
            yield from self.fields(value, depth + 1)
        elif isinstance(value, list):
            yield [*head[:2], Part(f" ({len(value)})")]
            yield from self._items(value, depth + 1)
        else:
            yield head + self._scalar(value)

    def _items(self, items: list[Tree], depth: int) -> Iterator[Line]:
        if not any(isinstance(item, (dict, list)) for item in items):
            yield from self._wrapped(items, depth)
            return
        for item in items:
            dash = [Part(f"{_INDENT * depth}- ")]
            if (short := self._short(item, COLUMNS - _width(dash), bare=True)) is not None:
                yield dash + short
            elif isinstance(item, dict):
                for number, line in enumerate(self.fields(item, depth + 1)):
                    yield dash + line[1:] if number == 0 else line
            else:
                yield from self.field("-", item, depth)

    def _wrapped(self, items: list[Tree], depth: int) -> Iterator[Line]:
        """Yield lines of scalar items, with as many items per line as fit."""
        line: Line = [Part(_INDENT * depth)]
        for item in items:
            parts = self._scalar(item)
            if len(line) > 1 and _width(line) + _width(parts) + 2 > COLUMNS:
                yield line
                line = [Part(_INDENT * depth)]
            line += parts if len(line) == 1 else [Part(", "), *parts]
        yield line

    def _short(self, value: Tree, width: int, *, bare: bool = False) -> Line | None:
        """Format a struct or an array on one line, or return None if it does not fit."""
        match value:
            case dict():
                parts = self._joined(
                    (([Part(name, "name"), Part(": ")], item) for name, item in value.items()),
                    width,
                )
                return parts if parts is None or bare else [Part("{"), *parts, Part("}")]
            case list():
                if any(isinstance(item, dict) and len(item) > _INLINE_FIELDS for item in value):
                    return None  # easier to compare when the fields are aligned vertically
                parts = self._joined((([], item) for item in value), width)
                return None if parts is None else [Part("["), *parts, Part("]")]
            case _:
                scalar = self._scalar(value)
                return scalar if _width(scalar) <= width else None

    def _joined(self, items: Iterable[tuple[Line, Tree]], width: int) -> Line | None:
        parts: Line = []
        width -= 2
        for head, item in items:
            start = [*([Part(", ")] if parts else []), *head]
            width -= _width(start)
            short = self._short(item, width) if width > 0 else None
            if short is None:
                return None
            width -= _width(short)
            parts += [*start, *short]
        return parts if width >= 0 else None

    def _scalar(self, value: Tree) -> Line:
        match value:
            case None:
                return [Part("null", "number")]
            case bool():
                return [Part("true" if value else "false", "number")]
            case Meant():
                return [Part(str(value.value), "number"), Part(f" {value.meaning}", "meaning")]
            case str():
                return self._text(value)
            case Blob():
                return self._blob(value.data)
            case _:
                return [Part(str(value), "number")]

    def _text(self, text: str) -> Line:
        if self._bytes_shown is None or len(text) <= self._bytes_shown:
            return [Part(quoted(text), "text")]
        shown = quoted(text[: self._bytes_shown])
        return [Part(f"{shown}…", "text"), Part(f" ({len(text)} characters)")]

    def _blob(self, data: bytes) -> Line:
        shown = truncate(data, self._bytes_shown)
        text = text_of(shown)
        part = f"0x{shown.hex()}" if text is None else quoted(text)
        if len(shown) == len(data):
            return [Part(part, "text")]
        return [Part(f"{part}…", "text"), Part(f" ({len(data)} bytes)")]


def _width(parts: Line) -> int:
    return sum(len(part.text) for part in parts)


def text_of(data: bytes) -> str | None:
    """Decode printable text, which may contain newlines and tabs; return None for other data."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(each.isprintable() or each in "\n\r\t" for each in text) else None


def truncate(data: bytes, limit: int | None) -> bytes:
    """Return at most ``limit`` bytes of the data, without splitting a UTF-8 character."""
    if limit is None or len(data) <= limit:
        return data
    end = limit
    while end > limit - 3 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def document(entry: Entry, bytes_shown: int | None) -> dict[str, Any]:
    """Return an entry as a JSON document.

    The meaning of a number follows the number under a separate key, such as ``error_code_name``
    after ``error_code``. Bytes become an object with their length and their ``text`` or ``hex``.

    Args:
        entry: the entry.
        bytes_shown: the maximum number of bytes shown per value; None for all.
    """
    problem = entry.problem
    return {
        "number": entry.number,
        "source": entry.source,
        "offset": entry.offset,
        "size": entry.size,
        "kind": entry.kind,
        **_value(entry.about, bytes_shown),
        "header": _value(entry.header, bytes_shown),
        "body": _value(entry.body, bytes_shown),
        "problem": problem and {"offset": problem.offset, "text": problem.text},
    }


def _value(tree: Tree, bytes_shown: int | None) -> Any:
    match tree:
        case Meant():
            return tree.value
        case Blob():
            return _blob(tree.data, bytes_shown)
        case dict():
            fields: dict[str, Any] = {}
            for name, value in tree.items():
                fields[name] = _value(value, bytes_shown)
                if isinstance(value, Meant):
                    fields[f"{name}_{value.kind}"] = value.meaning
            return fields
        case list():
            return [_value(item, bytes_shown) for item in tree]
        case float() if not math.isfinite(tree):
            return str(tree)  # JSON cannot represent these
        case _:
            return tree


def _blob(data: bytes, bytes_shown: int | None) -> dict[str, Any]:
    shown = truncate(data, bytes_shown)
    text = text_of(shown)
    fields: dict[str, Any] = {"bytes": len(data)}
    fields.update({"hex": shown.hex()} if text is None else {"text": text})
    if len(shown) < len(data):
        fields["cut"] = True
    return fields
