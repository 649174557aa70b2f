"""Frames of Kafka: the same ones in whatever pieces they arrive, or one clear error."""

from __future__ import annotations

from fuzz.script import Script
from fuzz.streams import decoded, expected, feed, four_bytes, room, small_buffers
from trionet.net.wire._framing import SIZE_BYTES, FrameDecoder

WATCHED = ("trionet.net.wire._framing",)
WORDS = (
    *(b"\0\0\0", b"\0\0\0\0", b"\0\0\0\1", b"\xff\xff\xff\xff"),
    *(b"\x7f\xff\xff\xff", b"\0\0\0\x64"),
)
BYTES_MAX = 1024

LIMITS = (0, 1, 100, 1000)


def run(data: bytes) -> None:
    script = Script(data)
    options = script.byte()
    limit = LIMITS[options % len(LIMITS)]
    in_place = options >= 128
    pieces = script.pieces()
    decoder = FrameDecoder(limit)
    arrived = 0
    with small_buffers():
        for piece in pieces:
            feed(decoder, piece, in_place=in_place)
            arrived += len(piece)
            held = len(decoder._head) + len(decoder._payload or b"")
            assert held <= room(arrived) + SIZE_BYTES, (held, arrived)

    stream = b"".join(pieces)
    assert decoded(decoder) == expected(stream, four_bytes, b"", limit)
    _check_error(decoder, stream, limit)


def _check_error(decoder: FrameDecoder, stream: bytes, limit: int) -> None:
    """It names the size that is not allowed, and is the end of the stream."""
    if decoder.error is None:
        return
    position = sum(SIZE_BYTES + len(frame) for frame in decoder.frames)
    size = int.from_bytes(stream[position : position + SIZE_BYTES], "big", signed=True)
    assert str(size) in str(decoder.error), decoder.error
    assert not 0 <= size <= limit
    frames = len(decoder.frames)
    decoder.receive_data(b"\0\0\0\0\0")
    assert (frames, b"", False) == (len(decoder.frames), decoder._head, decoder.wants_fill)
