"""Sources of bytes: files and pipes of any size, and short texts."""

from __future__ import annotations

import io
from enum import Enum
from typing import BinaryIO, Final

#: The encodings of inputs.
AUTO: Final = "auto"
HEX: Final = "hex"
BASE64: Final = "base64"
RAW: Final = "raw"
FORMATS: Final = (AUTO, HEX, BASE64, RAW)


class Kind(Enum):
    """What raw bytes contain."""

    FRAMES = "size-prefixed frames"
    BARE = "one message without a size prefix"
    BATCHES = "record batches"


#: The chunk size for skipping.
_SKIPPED_BYTES: Final = 64 * 1024


class Source:
    """A sequential reader of bytes with look-ahead.

    Args:
        name: the name of the source in messages.
        file: the file to read; the caller closes it.
        form: the encoding of the original input.

    Attributes:
        offset: the number of bytes read or skipped.
    """

    def __init__(self, name: str, file: BinaryIO, form: str = "raw") -> None:
        self.name = name
        self.form = form
        self.offset = 0
        self._file = file
        self._ahead = b""

    def peek(self, count: int) -> bytes:
        """Return the next ``count`` bytes, or fewer at the end, without consuming them."""
        missing = count - len(self._ahead)
        if missing > 0:
            self._ahead += self._file.read(missing)
        return self._ahead[:count]

    def read(self, count: int) -> bytes:
        """Read the next ``count`` bytes, or fewer at the end."""
        data, self._ahead = self._ahead[:count], self._ahead[count:]
        if len(data) < count:
            data += self._file.read(count - len(data))
        self.offset += len(data)
        return data

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes, or fewer at the end, and return the number of bytes skipped."""
        left = count
        while left:
            passed = len(self.read(min(left, _SKIPPED_BYTES)))
            if not passed:
                break
            left -= passed
        return count - left


def source_of(name: str, data: bytes, form: str) -> Source:
    """Return a source of bytes in memory."""
    return Source(name, io.BytesIO(data), form)
