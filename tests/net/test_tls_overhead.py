"""Records without data: they cost the engine more than their bytes tell, and are bounded."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.key_updates import RecordWriter, logging_context
from support.tls import TlsClient, server_context, shake_hands
from support.wire import tcp_pair
from trionet.net.tls._tls_transport import (
    OVERHEAD_BYTES_MAX,
    READ_BYTES_FIRST,
    RECORD_COST_BYTES,
    RESPONSE_BYTES_MAX,
    SILENT_BYTES_MAX,
    TlsError,
    TlsTransport,
)

RECORD_BYTES = 27  # one with a key update
KEY_UPDATES_PER_TURN_MAX = OVERHEAD_BYTES_MAX // RECORD_COST_BYTES


class Rig:
    """A transport, and its peer as one who writes records as it likes."""

    def __init__(self, near: socket.socket, far: socket.socket, keys: Path) -> None:
        self.near, self.far = near, far
        self.transport = TlsTransport(near, server_context())
        client = TlsClient(far, logging_context(keys))
        shake_hands(self.transport, client)
        self.writer = RecordWriter(client, keys)

    def arrive(self, data: bytes) -> None:
        """Send all of it before anything is read."""
        self.far.sendall(data)
        while self.left() < len(data):
            assert select.select([self.near], [], [], 5)[0]

    def read_in_turns(self) -> bytes:
        """Read, in further turns while there is more to decrypt."""
        while True:
            try:
                return self.transport.read(100)
            except BlockingIOError:
                assert self.transport.has_buffered

    def left(self) -> int:
        """How much was not taken from the socket."""
        try:
            return len(self.near.recv(1024 * 1024, socket.MSG_PEEK))
        except BlockingIOError:
            return 0


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    near, far = tcp_pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024 * 1024)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    with near, far:
        yield Rig(near, far, tmp_path / "keys")


def test_some_key_updates_are_nothing(rig: Rig) -> None:
    for _ in range(3):
        rig.arrive(rig.writer.key_updates(20, are_answered=True) + rig.writer.data(b"data"))

        assert b"data" == rig.transport.read(100)


def test_who_sends_nothing_else_is_let_go(rig: Rig) -> None:
    """Not in one go: others have their turn before."""
    rig.arrive(rig.writer.key_updates(2 * SILENT_BYTES_MAX // RECORD_BYTES))
    taken = []

    def read_until_the_end() -> None:
        while before := rig.left():
            try:
                rig.transport.read(100)
            except BlockingIOError:
                taken.append(before - rig.left())

    with pytest.raises(TlsError, match="records without data"):
        read_until_the_end()

    assert len(taken) > 1
    assert max(taken) <= OVERHEAD_BYTES_MAX + READ_BYTES_FIRST


def test_records_without_data_end_a_turn_though_they_are_small(rig: Rig) -> None:
    """Each costs the engine as much as kilobytes, and every connection may send some at once."""
    rig.arrive(rig.writer.key_updates(KEY_UPDATES_PER_TURN_MAX + 20) + rig.writer.data(b"data"))

    with pytest.raises(BlockingIOError):
        rig.transport.read(100)

    assert 0 == rig.left()
    assert rig.transport.has_buffered
    assert b"data" == rig.read_in_turns()
    assert not rig.transport.has_buffered


def test_heads_of_records_may_come_in_parts(rig: Rig) -> None:
    """However the stream is cut, the records without data in it are as many."""
    records = rig.writer.key_updates(10) + rig.writer.data(b"data")
    for at in range(0, len(records), 4):
        rig.arrive(records[at : at + 4])
        if at + 4 < len(records):
            with pytest.raises(BlockingIOError):
                rig.transport.read(100)

    assert b"data" == rig.read_in_turns()
    rig.arrive(rig.writer.key_updates(2 * SILENT_BYTES_MAX // RECORD_COST_BYTES))
    with pytest.raises(TlsError, match="records without data"):
        rig.read_in_turns()


def test_one_byte_in_each_record_is_data(rig: Rig) -> None:
    count = 2 * SILENT_BYTES_MAX // 23
    rig.arrive(b"".join(rig.writer.data(b"x") for _ in range(count)))
    received = b""

    while rig.left() or rig.transport.has_buffered:
        with suppress(BlockingIOError):
            received += rig.transport.read(100)

    assert count * b"x" == received


def test_a_buffer_is_filled_in_turns_if_little_of_what_comes_is_data(rig: Rig) -> None:
    """What the engine has not been given yet is told of, for the poller knows nothing of it."""
    count = 4000
    rig.arrive(b"".join(rig.writer.key_updates(1) + rig.writer.data(b"12") for _ in range(count)))
    buffer = memoryview(bytearray(3 * count))
    filled = turns = 0

    while filled < 2 * count:
        before = filled
        try:
            while True:
                filled += rig.transport.read_into(buffer[filled:])
        except BlockingIOError:
            turns += 1
            assert filled == 2 * count or rig.transport.has_buffered or rig.left()
        assert (filled - before) // 2 * RECORD_BYTES < OVERHEAD_BYTES_MAX + 2 * READ_BYTES_FIRST

    assert count * b"12" == buffer[:filled]
    assert turns > 5


def test_a_peer_that_reads_no_responses_is_let_go(rig: Rig) -> None:
    """They would pile up without end."""
    kept = 0

    def ask_on() -> None:
        nonlocal kept
        while kept < 2 * RESPONSE_BYTES_MAX:
            ask(rig)
            kept = sum(map(len, rig.transport._unsent))

    with pytest.raises(TlsError, match="does not read the responses"):
        ask_on()

    assert 0.9 * RESPONSE_BYTES_MAX < kept <= RESPONSE_BYTES_MAX


def test_a_peer_that_reads_the_responses_may_ask_on(rig: Rig) -> None:
    """What it has read does not count when it once reads late."""
    for _ in range(2 * RESPONSE_BYTES_MAX // (100 * RECORD_BYTES)):
        ask(rig)
        assert rig.far.recv(1024 * 1024)

    while not rig.transport._unsent:
        ask(rig)

    assert rig.far.recv(1024 * 1024)
    ask(rig)


def ask(rig: Rig) -> None:
    """Let a hundred responses be made."""
    rig.arrive(rig.writer.key_updates(100, are_answered=True) + rig.writer.data(b"data"))
    assert b"data" == rig.read_in_turns()
