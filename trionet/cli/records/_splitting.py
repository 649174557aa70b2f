"""Input in pieces of any size, cut at a delimiter."""

from __future__ import annotations

from trionet.errors import TrionetError


class InputError(TrionetError):
    """What was read is no record; says which, and why."""


class Splitter:
    """Cuts what is fed to it; what a delimiter does not end yet is kept.

    What grows too long is not kept: it is passed over up to its delimiter.

    Args:
        delimiter: at least one byte.
        size_max: of what is kept, in bytes.

    Attributes:
        is_passing_over: whether the input is in the middle of what has grown too long.
        passed_over: how many have.
    """

    def __init__(self, delimiter: bytes, size_max: int) -> None:
        self._delimiter = delimiter
        self._size_max = size_max
        self._kept = bytearray()
        self._looked_at = 0
        self.is_passing_over = False
        self.passed_over = 0

    @property
    def kept(self) -> int:
        """How many bytes wait for their end."""
        return len(self._kept)

    def feed(self, data: bytes) -> list[bytes]:
        """What is complete now, without the delimiters."""
        pieces = self._cut(data)
        if pieces and self.is_passing_over:
            self.is_passing_over = False
            del pieces[0]
        if len(self._kept) > self._size_max:
            self.passed_over += not self.is_passing_over
            # The end of a delimiter may be what comes next.
            del self._kept[: len(self._kept) - len(self._delimiter) + 1]
            self._looked_at = len(self._kept)
            self.is_passing_over = True
        return pieces

    def _cut(self, data: bytes) -> list[bytes]:
        if not self._kept:
            pieces = data.split(self._delimiter)
        elif len(self._delimiter) == 1:
            # No delimiter is half in what came before: of a megabyte only the first line is copied.
            pieces = data.split(self._delimiter)
            self._kept += pieces[0]
            if len(pieces) == 1:
                self._looked_at = len(self._kept)
                return []
            pieces[0] = bytes(self._kept)
        else:
            self._kept += data
            # The delimiter may have begun in what came before.
            start = max(0, self._looked_at - len(self._delimiter) + 1)
            if self._kept.find(self._delimiter, start) < 0:
                self._looked_at = len(self._kept)
                return []
            pieces = bytes(self._kept).split(self._delimiter)
        self._kept = bytearray(pieces.pop())
        self._looked_at = len(self._kept)
        return pieces

    def end(self) -> list[bytes]:
        """What is left at the end of the input; nothing if it ends with a delimiter."""
        rest = b"" if self.is_passing_over else bytes(self._kept)
        self._kept.clear()
        self._looked_at = 0
        self.is_passing_over = False
        return [rest] if rest else []
