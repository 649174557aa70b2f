"""What a connection under TLS keeps in memory, whatever went through it before."""

from __future__ import annotations

import ctypes
import gc
import select
from collections.abc import Callable, Iterator

import pytest

from support.tls import TlsClient, server_context, shake_hands
from support.wire import tcp_pair
from trionet.net.tls._tls_transport import ENGINE_BYTES_MAX, TlsTransport
from trionet.net.wire._transmission import Send

KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE
RECORD = bytes(range(256)) * 64
# Both directions; without a bound of its own each of the engine's buffers would keep 350 KB.
KEPT_BYTES_MAX = 250 * KILOBYTE


# What mallinfo2(3) tells: ten numbers, of which two are wanted here.
_FIELDS = [
    ("before", ctypes.c_size_t * 4),
    ("mapped_bytes", ctypes.c_size_t),
    ("between", ctypes.c_size_t * 2),
    ("used_bytes", ctypes.c_size_t),
    ("after", ctypes.c_size_t * 2),
]
_Mallinfo2 = type("_Mallinfo2", (ctypes.Structure,), {"_fields_": _FIELDS})


@pytest.fixture
def allocated() -> Callable[[], int]:
    """How many bytes the allocator of C has given out, to Python and to OpenSSL."""
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is None:
        pytest.skip("the C library of this system does not tell what it has given out")
    mallinfo2.restype = _Mallinfo2

    def count() -> int:
        gc.collect()
        told = mallinfo2()
        return int(told.used_bytes + told.mapped_bytes)

    return count


@pytest.fixture
def pair() -> Iterator[tuple[TlsTransport, TlsClient]]:
    """A transport and its client after their handshake, and after a first record."""
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        shake_hands(transport, client)
        client.send(RECORD)
        assert RECORD == receive(transport, len(RECORD))
        yield transport, client


def receive(transport: TlsTransport, count: int) -> bytes:
    """The next `count` bytes, each read as the loop would do it."""
    received = b""
    while len(received) < count:
        if not transport.has_buffered:
            assert select.select([transport], [], [], 5)[0]
        try:
            received += transport.read(count - len(received))
        except BlockingIOError:
            continue
    return received


def throw_away(transport: TlsTransport, client: TlsClient, size: int) -> None:
    """Write so much to a client that does not even decrypt it."""
    send = Send([bytes(size)])
    while send.remaining:
        send.write_to(transport)
        while select.select([client.sock], [], [], 0)[0]:
            client.sock.recv(MEGABYTE)


def test_an_idle_connection_keeps_little_of_what_went_through_it(
    pair: tuple[TlsTransport, TlsClient], allocated: Callable[[], int]
) -> None:
    """KAFKA-7454: 4 MB in each direction, of which the engine's own buffers saw a part at once."""
    transport, client = pair
    before = allocated()

    throw_away(transport, client, 4 * MEGABYTE)
    for _ in range(10):
        client.sock.sendall(b"".join(client.encrypt(RECORD) for _ in range(40)))
        assert 40 * RECORD == receive(transport, 40 * len(RECORD))

    assert allocated() - before < KEPT_BYTES_MAX


def test_what_the_engine_has_not_asked_for_yet_is_buffered(
    pair: tuple[TlsTransport, TlsClient],
) -> None:
    """KAFKA-13559: no poller tells of it, since it was read from the socket already.

    Eight records are as much as the engine is given at once, so that it comes to rest between two.
    """
    transport, client = pair
    first = client.encrypt(b"x")
    client.sock.sendall(first)
    assert b"x" == receive(transport, 1)
    record = bytes(ENGINE_BYTES_MAX // 8 - len(first) + 1)
    client.sock.sendall(b"".join(client.encrypt(record) for _ in range(14)))

    assert 14 * record == receive(transport, 14 * len(record))

    assert not transport.has_buffered
