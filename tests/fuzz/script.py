"""Bytes that say what happens: what a target makes of the input it is given."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

#: Stands between the parts of an input where lengths would fall apart with each byte that a fuzzer
#: puts in. No UTF-8 has it.
SEPARATOR = b"\xff"


class Script:
    """Reads an input from its beginning; after the end there are zeros."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def is_over(self) -> bool:
        return self._position >= len(self._data)

    def byte(self) -> int:
        """The next number."""
        self._position += 1
        return self._data[self._position - 1] if self._position <= len(self._data) else 0

    def take(self, count: int) -> bytes:
        """The next bytes, fewer at the end."""
        self._position += count
        return self._data[self._position - count : self._position]

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(max(0, len(self._data) - self._position))

    def pieces(self, sizes_max: int = 7) -> list[bytes]:
        """The rest as a stream that arrives in pieces.

        First comes how many sizes there are, then the sizes, which are used in turns: 0 stands for
        all that is left. Without sizes the stream is one piece.
        """
        sizes = self.take(self.byte() % (sizes_max + 1))
        return list(_cut(self.rest(), sizes))


def _cut(stream: bytes, sizes: bytes) -> Iterator[bytes]:
    for size in cycle(sizes or b"\0"):
        if not stream:
            return
        count = size or len(stream)
        yield stream[:count]
        stream = stream[count:]
