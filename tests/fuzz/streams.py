"""Streams of frames: what must come of them, however they arrive, and how little is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType

import attrs

from trionet.net.wire import _framing as framing
from trionet.net.wire._framing import Decoder
from trionet.net.wire._head_decoder import HEAD_BYTES_MAX, ReadHead

STEP_BYTES = 64
STEP_BYTES_MIN = 8


@attrs.frozen
class Decoded:
    """What a stream holds.

    Attributes:
        frames: the whole ones, in order.
        is_valid: whether nothing behind them breaks a rule.
        is_inside_frame: whether it ends in the middle of one.
    """

    frames: list[bytes]
    is_valid: bool
    is_inside_frame: bool


def decoded(decoder: Decoder) -> Decoded:
    """What a decoder made of a stream."""
    return Decoded(
        [bytes(frame) for frame in decoder.frames], decoder.error is None, decoder.is_inside_frame
    )


def expected(stream: bytes, read_head: ReadHead, tail: bytes, frame_bytes_max: int) -> Decoded:
    """What a stream holds, read in one piece and in the plainest way."""
    frames: list[bytes] = []
    while stream:
        try:
            found = read_head(stream[:HEAD_BYTES_MAX])
        except ValueError:
            return Decoded(frames, False, False)
        if found is None or found[0] > len(stream):
            is_valid = len(stream) < HEAD_BYTES_MAX
            return Decoded(frames, is_valid, is_valid)
        start, size = found
        end = start + size
        if not 0 <= size <= frame_bytes_max:
            return Decoded(frames, False, False)
        if end + len(tail) > len(stream):
            return Decoded(frames, True, True)
        if stream[end : end + len(tail)] != tail:
            return Decoded(frames, False, False)
        frames.append(stream[start:end])
        stream = stream[end + len(tail) :]
    return Decoded(frames, True, False)


def four_bytes(data: bytes) -> tuple[int, int] | None:
    """Kafka's head: a signed size, which counts as soon as it is known."""
    return (4, int.from_bytes(data[:4], "big", signed=True)) if len(data) >= 4 else None


def feed(decoder: Decoder, piece: bytes, *, in_place: bool) -> None:
    """Give a decoder the next piece, the rest of a frame by ``fill`` if ``in_place``."""
    while piece:
        if not (in_place and decoder.wants_fill):
            decoder.receive_data(piece)
            return
        view = memoryview(piece)

        def read_into(buffer: memoryview, view: memoryview = view) -> int:
            count = min(len(buffer), len(view))
            buffer[:count] = view[:count]
            return count

        piece = piece[decoder.fill(read_into) :]


@contextmanager
def small(module: ModuleType, **sizes: int) -> Iterator[None]:
    """A block in which a module has these sizes."""
    variables = vars(module)
    before = {name: variables[name] for name in sizes}
    variables.update(sizes)
    try:
        yield
    finally:
        variables.update(before)


def small_buffers() -> AbstractContextManager[None]:
    """A block in which buffers grow in steps so small that they have to in small inputs too."""
    return small(framing, BUFFER_STEP_BYTES=STEP_BYTES, BUFFER_STEP_BYTES_MIN=STEP_BYTES_MIN)


def room(arrived: int) -> int:
    """How large a buffer may be by then, of which so many bytes have arrived."""
    return arrived + min(max(3 * arrived, STEP_BYTES_MIN), STEP_BYTES)
