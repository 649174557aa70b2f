"""The records of a batch that lies in several pieces of memory, as one chunk of a request."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...protocol._wire import Chunk


class RecordPieces:
    """A chunk that codecs pass through unseen; :func:`flattened` replaces it by its pieces.

    Args:
        pieces: bytes-like objects that together are the records.
    """

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: Sequence[Chunk]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))

    def __len__(self) -> int:
        return self.size


def flattened(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Replace each :class:`RecordPieces` by its pieces, without copying."""
    flat: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, RecordPieces):
            flat += chunk.pieces
        else:
            flat.append(chunk)
    return flat
