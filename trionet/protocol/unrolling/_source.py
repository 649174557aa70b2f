"""The source of a codec: indented lines, and the ``struct`` formats that they use."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: The width of the checked-in source, in columns. Calls that would not fit take two statements.
WIDTH: Final = 100


class Formats:
    """The ``struct`` formats that some codecs use, named after their characters."""

    def __init__(self) -> None:
        self._readers: set[str] = set()
        self._writers: set[str] = set()
        self._array_readers: set[tuple[str, bool]] = set()
        self._array_writers: set[str] = set()

    def reader(self, codes: str) -> str:
        """Return the name of the function that reads these fields."""
        self._readers.add(codes)
        return _format_name("U", codes)

    def writer(self, codes: str) -> str:
        """Return the name of the function that writes these fields."""
        self._writers.add(codes)
        return _format_name("P", codes)

    def array_reader(self, code: str, flexible: bool) -> str:
        """Return the name of the readers of arrays of numbers, by encoded count."""
        self._array_readers.add((code, flexible))
        return _format_name("UA", f"{'B' if flexible else 'i'}n{code}")

    def array_writer(self, codes: str) -> str:
        """Return the name of the writers of a run with arrays of numbers, by encoded counts.

        Args:
            codes: the format, with ``n`` after each count and before the code of its numbers.
        """
        self._array_writers.add(codes)
        return _format_name("PA", codes)

    def definitions(self, known: set[str]) -> list[str]:
        """Return the source of the definitions, except for names that are already known."""
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
    """Return the size of a format in bytes."""
    return struct.calcsize(">" + codes)


class Lines:
    """A growing block of indented source code.

    Args:
        depth: the depth of indentation.
    """

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def __call__(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def indented(self, header: str) -> Iterator[None]:
        """Add a header, and indent the lines that are added in the block."""
        self(header)
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        """Return the source code."""
        return "\n".join(self._lines)


class Function:
    """The source of one function that is being written: what decoders and encoders share.

    Args:
        formats: collects the formats that the source uses.
        tag_functions: for each struct with known tags, the function for its tag section.
    """

    #: Names that the function uses for other purposes.
    reserved: frozenset[str] = frozenset(
        [
            "message",
            "target",
            "buf",
            "pos",
            "size",
            "left",
            "view",
            "n",
            "k",
            "tag",
            "end",
            "count",
            "unknown",
            "new",
            "put",
            "out",
            "raw",
            "section",
        ]
    )

    def __init__(self, formats: Formats, tag_functions: dict[str, str]) -> None:
        self._formats = formats
        self._tag_functions = tag_functions
        self._lines = Lines(depth=1)
        self._run: list[tuple[str, str]] = []
        self._names: dict[str, int] = {}

    def _name(self, wanted: str) -> str:
        """Return a local name that no other struct or array of the function has."""
        name = "".join("_" + letter.lower() if letter.isupper() else letter for letter in wanted)
        name = name.lstrip("_")
        number = self._names.get(name, 0)
        self._names[name] = number + 1
        return f"{name}_{number + 1}" if number or name in self.reserved else name
