"""What comes out of a codec piece by piece, within a limit."""

from __future__ import annotations

from typing import Final, TypeAlias

import cramjam

from trionet.errors import WireFormatError

Piece: TypeAlias = bytes | bytearray | memoryview | cramjam.Buffer

#: So many pieces are put together before there are more: a byte that comes alone, as a sender may
#: have it, costs two hundred as an object.
_PIECES_MAX: Final = 1024


class Pieces:
    """Pieces that are put together at the end.

    Args:
        limit: the most bytes that all of them may have.

    Attributes:
        left: how many more they may have.
    """

    __slots__ = ("_limit", "_pieces", "_wholes", "left")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[Piece] = []
        self._wholes: list[Piece] = []
        self.left = limit

    def add(self, piece: Piece) -> None:
        """Add the next one, which may be empty.

        Raises:
            WireFormatError: it is too much.
        """
        size = len(piece)
        self.left -= size
        if self.left < 0:
            raise too_large(self._limit)
        if size:
            self._pieces.append(piece)
            if len(self._pieces) >= _PIECES_MAX:
                self._wholes.append(b"".join(self._pieces))
                self._pieces.clear()

    def joined(self) -> bytes:
        """All of them; not copied if they are one, and ``bytes``."""
        pieces = self._wholes + self._pieces if self._wholes else self._pieces
        return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)


def too_large(limit: int) -> WireFormatError:
    """What is raised of records that are a bomb."""
    return WireFormatError(f"records grow beyond {limit} bytes when decompressed")
