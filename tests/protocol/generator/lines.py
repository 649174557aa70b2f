"""Source text: indentation, long lines, and the ``struct`` formats a module needs."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager

WIDTH = 100


class Formats:
    """The ``struct`` formats used by one module, named after their characters."""

    def __init__(self) -> None:
        self._readers: set[str] = set()
        self._writers: set[str] = set()
        self._array_readers: set[tuple[str, bool]] = set()
        self._array_writers: set[str] = set()

    def reader(self, codes: str) -> str:
        self._readers.add(codes)
        return _format_name("U", codes)

    def writer(self, codes: str) -> str:
        self._writers.add(codes)
        return _format_name("P", codes)

    def array_reader(self, code: str, flexible: bool) -> str:
        """Readers of arrays of numbers, to be indexed by the count as it is on the wire."""
        self._array_readers.add((code, flexible))
        return _format_name("UA", f"{'B' if flexible else 'i'}n{code}")

    def array_writer(self, codes: str) -> str:
        """Writers of a run with arrays of numbers, to be indexed by their counts on the wire.

        Args:
            codes: the format, with ``n`` after each count and before the code of its numbers.
        """
        self._array_writers.add(codes)
        return _format_name("PA", codes)

    def definitions(self, known: set[str]) -> list[str]:
        """Their definitions, but for the names that are known from elsewhere."""
        reads = [
            f'{_format_name("U", codes)}: Unpack = Struct(">{codes}").unpack_from'
            for codes in sorted(self._readers)
        ]
        writes = [
            f'{_format_name("P", codes)}: Pack = Struct(">{codes}").pack'
            for codes in sorted(self._writers)
        ]
        array_reads = [
            f"{self.array_reader(code, flexible)}: ArrayReaders"
            f" = ArrayReaders({code!r}, {flexible:d})"
            for code, flexible in sorted(self._array_readers)
        ]
        array_writes = [
            f"{self.array_writer(codes)}: ArrayWriters = ArrayWriters({codes!r}, {'Bn' in codes:d})"
            for codes in sorted(self._array_writers)
        ]
        every = reads + writes + array_reads + array_writes
        return [text for text in every if re.split(r"\W", text, maxsplit=1)[0] not in known]


def _format_name(prefix: str, codes: str) -> str:
    return f"{prefix}_{codes.replace('?', 'o')}"


def width_of(codes: str) -> int:
    """How many bytes a format takes on the wire."""
    return struct.calcsize(">" + codes)


class Lines:
    """A growing block of source text."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def __call__(self, text: str) -> None:
        self._lines.extend(wrap("    " * self._depth + text))

    @contextmanager
    def indented(self, header: str) -> Iterator[None]:
        self(header)
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        return "\n".join(self._lines)


def wrap(line: str) -> list[str]:
    """Break a line that is too long: at a read's targets, ``and``, in a call, or after ``=``."""
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    inner = indent + "    "
    targets, _, call = line.strip().partition(" = U_")
    if call:
        return [f"{indent}(", *_fill(targets.split(", "), inner), f"{indent}) = U_{call}"]
    if line.strip().startswith("if ") and line.endswith(":"):
        first, *others = line.strip()[3:-1].split(" and ")
        return [
            f"{indent}if (",
            inner + first,
            *(f"{inner}and {each}" for each in others),
            f"{indent}):",
        ]
    target, _, value = line.partition(" = ")
    if value and " = " not in value and not line.startswith("def "):
        return [f"{target} = (", *wrap(inner + value), f"{indent})"]
    head, _, rest = line.partition("(")
    body, closed, tail = rest.rpartition(")")
    if closed and (head[-1].isalnum() or head[-1] in "_]") and _balanced(body):
        parts = [each for text in _fill(_split(body), inner) for each in wrap(text)]
        return [*_call_head(head, indent), *parts, f"{indent}){tail}"]
    return [line]


def _call_head(head: str, indent: str) -> list[str]:
    """What stands before a call's arguments: a name, or an item whose keys may need lines too."""
    if len(head) < WIDTH or not head.endswith("]"):
        return [f"{head}("]
    name, _, keys = head[:-1].partition("[")
    return [f"{name}[", *_fill(_split(keys), indent + "    "), f"{indent}]("]


def _balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _split(text: str) -> list[str]:
    """The parts of a comma-separated list, ignoring commas inside brackets."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _fill(parts: list[str], indent: str) -> list[str]:
    lines, line = [], indent
    for part in parts:
        if len(line) + len(part) + 2 > WIDTH and line != indent:
            lines.append(line.rstrip())
            line = indent
        line += part + ", "
    lines.append(line.rstrip())
    return lines
