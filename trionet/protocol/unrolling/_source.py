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
