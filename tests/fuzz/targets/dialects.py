"""Frames of other protocols: the same ones in whatever pieces they arrive, or one error."""

from __future__ import annotations

import re
from collections.abc import Callable

from fuzz.script import Script
from fuzz.streams import decoded, expected, feed, room, small_buffers
from trionet.net.wire._head_decoder import HEAD_BYTES_MAX, HeadDecoder, ReadHead
from trionet.server._dialect import Dialect

WATCHED = ("trionet.net.wire._framing", "trionet.net.wire._head_decoder", "trionet.server._dialect")
WORDS = (
    *(b"\0", b"\0\1a", b"3:abc,", b"0:,", b"size 3\nabc\r\n", b"size "),
    *(b"\x80\x01", b"999999999:"),
)
BYTES_MAX = 2048

LIMITS = (0, 3, 100, 1000)


def two_bytes(data: bytes) -> tuple[int, int] | None:
    return (2, int.from_bytes(data[:2], "big")) if len(data) >= 2 else None


def netstring(data: bytes) -> tuple[int, int] | None:
    size, colon, _ = data.partition(b":")
    if not re.fullmatch(rb"0|[1-9][0-9]{0,8}", size):
        raise ValueError("no netstring")
    return (len(size) + 1, int(size)) if colon else None


def line(data: bytes) -> tuple[int, int] | None:
    """``size NUMBER`` and a line feed; the number may have a sign."""
    head, line_feed, _ = data.partition(b"\n")
    return (len(head) + 1, int(head.removeprefix(b"size "))) if line_feed else None


def varint(data: bytes) -> tuple[int, int] | None:
    size = 0
    for index, byte in enumerate(data):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return index + 1, size
    return None


def varint_head(size: int) -> bytes:
    head = bytearray()
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*head, size))


Form = tuple[ReadHead, Callable[[int], bytes], bytes]

FORMS: tuple[Form, ...] = (
    (two_bytes, lambda size: size.to_bytes(2, "big"), b""),
    (netstring, lambda size: b"%d:" % size, b","),
    (line, lambda size: b"size %d\n" % size, b"\r\n"),
    (varint, varint_head, b""),
)


def run(data: bytes) -> None:
    script = Script(data)
    options = script.byte()
    read_head, write_head, tail = FORMS[options % len(FORMS)]
    limit = LIMITS[options // 4 % len(LIMITS)]
    pieces = script.pieces()
    dialect = Dialect.length_prefixed(read_head, write_head, tail)
    decoder = dialect.decoder(limit)
    assert isinstance(decoder, HeadDecoder)
    arrived = 0
    with small_buffers():
        for piece in pieces:
            feed(decoder, piece, in_place=options >= 128)
            arrived += len(piece)
            held = len(decoder._head) + len(decoder._payload or b"")
            assert held <= room(arrived), (held, arrived)
            assert len(decoder._head) < HEAD_BYTES_MAX

    found = decoded(decoder)
    assert found == expected(b"".join(pieces), read_head, tail, limit)
    _check_answers(dialect, found.frames)
    if decoder.error is not None:
        decoder.receive_data(b"0:,\0\0")
        assert found == decoded(decoder)


def _check_answers(dialect: Dialect, frames: list[bytes]) -> None:
    """What gets a response is framed as it came."""
    chunks = [chunk for frame in frames for chunk in dialect.frame(frame)]
    written = b"".join(map(bytes, chunks))  # type: ignore[arg-type]  # no file among them
    decoder = dialect.decoder(max(map(len, frames), default=0))
    decoder.receive_data(written)
    assert frames == list(decoder.frames)
