"""Raw exchanges with a Jafka server: what it responds, and whether it closes the connection."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Final

from trionet.jafka._codec import encode_request, encode_response
from trionet.jafka._requests import FetchRequest, JafkaRequest, OffsetRequest, ProducerRequest

#: A request that any server responds to, and its response.
PROBE: Final = encode_request(FetchRequest("never-created", 0, 0, 1))
PROBED: Final = encode_response()
#: `one` and `two`, compressed with gzip, as one payload of 43 bytes.
PACKED: Final = bytes.fromhex(
    "1f8b0800000000000003636060e06464a8ca69fb989f97ca00e6089eea4a2b29cf07005706a9481a000000"
)


def framed(kind: int, body: bytes) -> bytes:
    """A request of any type."""
    return struct.pack(">ih", 2 + len(body), kind) + body


def text(value: str | None) -> bytes:
    """A string as it is written."""
    if value is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(value.encode())) + value.encode()


def exchange(port: int, *data: bytes) -> bytes:
    """What a server sends on a connection in response to all of this, up to its end.

    Each piece is sent by itself. The server is told that there is no more, and responds none the
    less.
    """
    received = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # it may have closed the connection already
            for piece in data:
                sock.sendall(piece)
            sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while piece := sock.recv(65536):
                received += piece
    return bytes(received)


def response_to(port: int, *requests: JafkaRequest | bytes) -> bytes | None:
    """The responses to some requests; None if the server closes the connection instead.

    A request that gets none responds with nothing.
    """
    frames = [each if isinstance(each, bytes) else encode_request(each) for each in requests]
    received = exchange(port, b"".join([*frames, PROBE]))
    if received.endswith(PROBED):
        return received.removesuffix(PROBED)
    assert received == b"", received.hex()
    return None


def produce(port: int, topic: str, partition: int, messages: bytes) -> bytes | None:
    """Produce a message set; empty if the server took it, None if it closed the connection."""
    return response_to(port, ProducerRequest(topic, partition, messages))


def end_of(port: int, topic: str, partition: int = 0) -> int | None:
    """Where a partition ends; None if it has no log."""
    received = response_to(port, OffsetRequest(topic, partition, -1, 1))
    assert received is not None
    size, code, count, *offsets = struct.unpack(f">ihi{(len(received) - 10) // 8}q", received)
    assert (len(received) - 4, 0, len(offsets)) == (size, code, count)
    return offsets[0] if offsets else None
