"""The records of a batch that is in several pieces of memory, as one chunk of a request."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...protocol._wire import Chunk


class RecordPieces:
    """What a codec puts between others without looking at it; :func:`flattened` takes it apart.

    Args:
        pieces: bytes-like objects; together the records.
    """

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: Sequence[Chunk]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))

    def __len__(self) -> int:
        return self.size


def flattened(chunks: Iterable[Chunk]) -> list[Chunk]:
    """The chunks with the pieces of records each for itself, none of them copied."""
    flat: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, RecordPieces):
            flat += chunk.pieces
        else:
            flat.append(chunk)
    return flat
