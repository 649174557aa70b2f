"""Frames of Kafka over a real socket, as a channel reads them."""

from __future__ import annotations

import select
import socket

from fuzz.script import Script
from fuzz.streams import Decoded, expected, four_bytes, small, small_buffers
from trionet.errors import InvalidReceiveError
from trionet.net import _channel as channel_module
from trionet.net._channel import Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._transport import PlaintextTransport

WATCHED = ("trionet.net._channel", "trionet.net.wire._framing")
WORDS = (
    *(b"\0\0\0", b"\0\0\0\0", b"\0\0\0\1", b"\xff\xff\xff\xff"),
    *(b"\x7f\xff\xff\xff", b"\0\0\0\x1c"),
)
BYTES_MAX = 1024

READ_BYTES = 32
LIMITS = (0, 1, 100, 1000)


def run(data: bytes) -> None:
    script = Script(data)
    limit = LIMITS[script.byte() % len(LIMITS)]
    pieces = script.pieces()
    near, far = socket.socketpair()
    with near, far, small_buffers(), small(channel_module, READ_BYTES=READ_BYTES):
        far.setblocking(False)
        channel = Channel("c", PlaintextTransport(near), limit)
        frames: list[bytes] = []
        is_valid = True
        for piece in pieces:
            far.send(piece)
            is_valid = _receive(channel, frames)
            if not is_valid:
                break  # here the connection is closed
        far.shutdown(socket.SHUT_WR)
        is_inside = False
        if is_valid:
            is_inside = _end(channel) is CloseReason.PEER_CLOSED_IN_FRAME

    stream = b"".join(pieces)
    assert Decoded(frames, is_valid, is_inside) == expected(stream, four_bytes, b"", limit)
    if is_valid:
        assert len(stream) == channel.bytes_received


def _receive(channel: Channel, frames: list[bytes]) -> bool:
    """Do what a selector does as long as something is there; False if what came breaks a rule."""
    try:
        while channel.has_staged or select.select([channel.fd], [], [], 0)[0]:
            frame = channel.take_staged() if channel.has_staged else channel.receive()
            if frame is not None:
                frames.append(bytes(frame))
    except InvalidReceiveError:
        assert not channel.has_staged
        return False
    return True


def _end(channel: Channel) -> CloseReason:
    try:
        frame = channel.receive()
    except EOFError:
        return channel.end_of_stream_reason
    raise AssertionError(f"a frame behind the end: {frame!r}")
