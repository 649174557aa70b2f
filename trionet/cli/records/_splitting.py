"""Splits input at a delimiter; the input arrives in chunks of any size."""

from __future__ import annotations

from trionet.errors import TrionetError


class InputError(TrionetError):
    """Raised when input cannot be read or is not a valid record."""


class Splitter:
    """Splits input at a delimiter, buffering an incomplete part.

    A part that exceeds ``size_max`` is skipped up to the next delimiter.

    Args:
        delimiter: the delimiter, at least one byte.
        size_max: the maximum number of bytes to buffer.

    Attributes:
        is_skipping: whether the input is inside a part that is too long.
        skipped: the number of parts skipped.
    """

    def __init__(self, delimiter: bytes, size_max: int) -> None:
        self._delimiter = delimiter
        self._size_max = size_max
        self._kept = bytearray()
        self._searched = 0
        self.is_skipping = False
        self.skipped = 0

    @property
    def kept(self) -> int:
        """The number of buffered bytes."""
        return len(self._kept)

    def feed(self, data: bytes) -> list[bytes]:
        """Add a chunk, and return the completed parts without delimiters."""
        parts = self._cut(data)
        if parts and self.is_skipping:
            self.is_skipping = False
            del parts[0]
        if len(self._kept) > self._size_max:
            self.skipped += not self.is_skipping
            # The delimiter may be split between this chunk and the next.
            del self._kept[: len(self._kept) - len(self._delimiter) + 1]
            self._searched = len(self._kept)
            self.is_skipping = True
        return parts

    def _cut(self, data: bytes) -> list[bytes]:
        if not self._kept:
            parts = data.split(self._delimiter)
        elif len(self._delimiter) == 1:
            # A one-byte delimiter cannot be split, so only the first line is copied.
            parts = data.split(self._delimiter)
            self._kept += parts[0]
            if len(parts) == 1:
                self._searched = len(self._kept)
                return []
            parts[0] = bytes(self._kept)
        else:
            self._kept += data
            # The delimiter may have started in an earlier chunk.
            start = max(0, self._searched - len(self._delimiter) + 1)
            if self._kept.find(self._delimiter, start) < 0:
                self._searched = len(self._kept)
                return []
            parts = bytes(self._kept).split(self._delimiter)
        self._kept = bytearray(parts.pop())
        self._searched = len(self._kept)
        return parts

    def end(self) -> list[bytes]:
        """Return the last part, or an empty list if the input ends with a delimiter."""
        rest = b"" if self.is_skipping else bytes(self._kept)
        self._kept.clear()
        self._searched = 0
        self.is_skipping = False
        return [rest] if rest else []
