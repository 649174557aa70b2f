"""The output of a decompressor, up to a size limit."""

from __future__ import annotations

from typing import Final, TypeAlias

import cramjam

from trionet.errors import WireFormatError

Part: TypeAlias = bytes | bytearray | memoryview | cramjam.Buffer

#: The number of parts after which they are joined. A peer can cause parts of a single byte, each of
#: which takes two hundred bytes as an object.
_PARTS_MAX: Final = 1024


class BoundedOutput:
    """Collects the output of a decompressor, in parts.

    Args:
        limit: the maximum total size in bytes.

    Attributes:
        left: the number of bytes that may still be added.
    """

    __slots__ = ("_joined", "_limit", "_parts", "left")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[Part] = []
        self._joined: list[Part] = []
        self.left = limit

    def add(self, part: Part) -> None:
        """Add the next part, which may be empty.

        Raises:
            WireFormatError: the limit is exceeded.
        """
        size = len(part)
        self.left -= size
        if self.left < 0:
            raise too_large(self._limit)
        if size:
            self._parts.append(part)
            if len(self._parts) >= _PARTS_MAX:
                self._joined.append(b"".join(self._parts))
                self._parts.clear()

    def joined(self) -> bytes:
        """Return the joined parts; a single part of type ``bytes`` is not copied."""
        parts = self._joined + self._parts if self._joined else self._parts
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def too_large(limit: int) -> WireFormatError:
    """Return the error for records whose decompressed size exceeds the limit."""
    return WireFormatError(f"records are larger than {limit} bytes when decompressed")
