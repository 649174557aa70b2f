"""Where bytes come from: files and pipes of any size, of which little is held, and short texts."""

from __future__ import annotations

import io
from typing import BinaryIO, Final

#: How much of what is passed over is held at once.
_SKIPPED_BYTES: Final = 64 * 1024


class Source:
    """Bytes to be read forwards, with a look ahead.

    Args:
        name: what messages call it.
        file: what to read; closed by whoever opened it.
        form: the form in which the bytes were written.

    Attributes:
        offset: how many bytes were read or skipped.
    """

    def __init__(self, name: str, file: BinaryIO, form: str = "raw") -> None:
        self.name = name
        self.form = form
        self.offset = 0
        self._file = file
        self._ahead = b""

    def peek(self, count: int) -> bytes:
        """The next ``count`` bytes, or as many as there are, which stay to be read."""
        missing = count - len(self._ahead)
        if missing > 0:
            self._ahead += self._file.read(missing)
        return self._ahead[:count]

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes, or as many as there are."""
        data, self._ahead = self._ahead[:count], self._ahead[count:]
        if len(data) < count:
            data += self._file.read(count - len(data))
        self.offset += len(data)
        return data

    def skip(self, count: int) -> int:
        """Pass over ``count`` bytes, or as many as there are; returns how many there were."""
        left = count
        while left:
            passed = len(self.read(min(left, _SKIPPED_BYTES)))
            if not passed:
                break
            left -= passed
        return count - left


def source_of(name: str, data: bytes, form: str) -> Source:
    """A source of bytes that are already there."""
    return Source(name, io.BytesIO(data), form)
