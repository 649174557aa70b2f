"""Sources cut into frames, messages and batches, one in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from trionet.protocol.records._batch import HEADER_SIZE, MAGIC, PREFIX_SIZE
from trionet.protocol.records.message_sets._message_set import MAGIC_AT

from ._forms import Kind
from ._recognition import length_min
from ._source import Source

#: The longest frame or batch that is read; longer ones are named and passed over.
PIECE_BYTES_MAX: Final = 256 * 1024 * 1024

_SIZE_BYTES: Final = 4
_size: Final = Struct(">i").unpack_from
_batch_size: Final = Struct(">8xi").unpack_from
#: The first bytes that batches and messages of all formats have.
_COMMON_BYTES: Final = MAGIC_AT + 1


class Piece(NamedTuple):
    """A frame, a message or a batch, as much as there is of it.

    Attributes:
        offset: where it starts in its source, the size prefix included.
        start: where ``data`` starts in its source.
        data: its bytes, without a size prefix.
        missing: how many bytes it should have beyond ``data``.
        problem: why it cannot be read, if it cannot.
    """

    offset: int
    start: int
    data: bytes
    missing: int = 0
    problem: str = ""


def pieces(source: Source, kind: Kind) -> Iterator[Piece]:
    """What a source holds, in order; it ends behind a piece with an impossible size."""
    if kind is Kind.FRAMES:
        return _frames(source)
    return _batches(source) if kind is Kind.BATCHES else _bare(source)


def _bare(source: Source) -> Iterator[Piece]:
    start = source.offset
    data = source.read(PIECE_BYTES_MAX)
    if source.peek(1):
        yield Piece(start, start, data, problem=_too_long("message", source))
    elif data:
        yield Piece(start, start, data)


def _too_long(what: str, source: Source) -> str:
    rest = source.skip(1 << 62)
    return f"a {what} longer than {PIECE_BYTES_MAX} bytes is not read ({rest} more are there)"


def _frames(source: Source) -> Iterator[Piece]:
    while prefix := source.peek(_SIZE_BYTES):
        offset = source.offset
        source.read(_SIZE_BYTES)
        if len(prefix) < _SIZE_BYTES:
            yield Piece(offset, offset, prefix, _SIZE_BYTES - len(prefix), "the size is cut short")
            return
        (size,) = _size(prefix)
        if size < 0:
            problem = f"a frame cannot have {size} bytes; nothing behind it can be found"
            yield Piece(offset, offset, prefix, problem=problem)
            return
        if size > PIECE_BYTES_MAX:
            yield _passed_over(source, offset, "frame", size)
            continue
        data = source.read(size)
        yield Piece(offset, offset + _SIZE_BYTES, data, size - len(data))


def _passed_over(source: Source, offset: int, what: str, size: int) -> Piece:
    passed = source.skip(size)
    problem = f"a {what} of {size} bytes is not read; at most {PIECE_BYTES_MAX}"
    return Piece(offset, offset, b"", size - passed, problem)


def _batches(source: Source) -> Iterator[Piece]:
    while head := source.peek(HEADER_SIZE):
        offset = source.offset
        if not any(head) and _only_zeros(source):
            return
        if len(head) < _COMMON_BYTES:
            data = source.read(len(head))
            yield Piece(offset, offset, data, _COMMON_BYTES - len(data), "its header is cut short")
            return
        (length,) = _batch_size(head)
        magic = head[MAGIC_AT]
        if magic > MAGIC or length < length_min(magic):
            yield Piece(offset, offset, b"", problem=_no_batch(magic, length))
            return
        size = PREFIX_SIZE + length
        if size > PIECE_BYTES_MAX:
            yield _passed_over(source, offset, "batch", size)
            continue
        data = source.read(size)
        yield Piece(offset, offset, data, size - len(data))


def _no_batch(magic: int, length: int) -> str:
    what = f"magic {magic} is unknown" if magic > MAGIC else f"it cannot have length {length}"
    return f"no batch starts here: {what}; nothing behind it can be found"


def _only_zeros(source: Source) -> bool:
    """Whether the rest was never written: a segment that is in use may be longer than its batches.

    Otherwise what was read to see it is gone, which does not matter: no batch can start with zeros.
    """
    while chunk := source.peek(HEADER_SIZE * 1024):
        if any(chunk):
            return False
        source.read(len(chunk))
    return True
