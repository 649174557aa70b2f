"""The plaintext transport over a real loopback connection."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ranges import RangedFile
from support.wire import reset, tcp_pair
from trionet.net.wire import _transport as transport_module
from trionet.net.wire._transmission import FileRange
from trionet.net.wire._transport import PlaintextTransport

LETTERS = b"abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def pair() -> Iterator[tuple[PlaintextTransport, socket.socket]]:
    near, far = tcp_pair()
    with near, far:
        yield PlaintextTransport(near), far


@pytest.fixture(params=[True, False], ids=["system calls", "portable"])
def pair_everywhere(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    pair: tuple[PlaintextTransport, socket.socket],
) -> tuple[PlaintextTransport, socket.socket]:
    """Where sendfile and sendmsg exist, and where they do not."""
    monkeypatch.setattr(transport_module, "_HAS_SENDFILE", request.param)
    monkeypatch.setattr(transport_module, "_HAS_SENDMSG", request.param)
    return pair


def wait_readable(transport: PlaintextTransport) -> None:
    assert select.select([transport], [], [], 5)[0]


def write_for_ever(transport: PlaintextTransport) -> None:
    while True:
        transport.write(bytes(1024 * 1024))


def test_socket_becomes_non_blocking() -> None:
    near, far = tcp_pair()
    with near, far:
        PlaintextTransport(near)

        assert near.gettimeout() == 0


def test_reading_nothing_does_not_wait(pair: tuple[PlaintextTransport, socket.socket]) -> None:
    transport, _ = pair

    with pytest.raises(BlockingIOError):
        transport.read(10)
    with pytest.raises(BlockingIOError):
        transport.read_into(memoryview(bytearray(10)))


def test_read_gives_what_is_there_up_to_the_limit(
    pair: tuple[PlaintextTransport, socket.socket],
) -> None:
    transport, far = pair
    far.sendall(b"abcdef")
    wait_readable(transport)

    assert b"abcd" == transport.read(4)
    assert b"ef" == transport.read(4)


def test_read_into_fills_the_start_of_a_buffer(
    pair: tuple[PlaintextTransport, socket.socket],
) -> None:
    transport, far = pair
    far.sendall(b"abc")
    wait_readable(transport)
    buffer = bytearray(b"......")

    assert 3 == transport.read_into(memoryview(buffer))
    assert b"abc..." == bytes(buffer)


def test_end_of_stream_reads_as_nothing(pair: tuple[PlaintextTransport, socket.socket]) -> None:
    transport, far = pair
    far.shutdown(socket.SHUT_WR)
    wait_readable(transport)

    assert b"" == transport.read(4)
    assert 0 == transport.read_into(memoryview(bytearray(4)))


def test_reset_raises(pair: tuple[PlaintextTransport, socket.socket]) -> None:
    transport, far = pair
    reset(far)
    wait_readable(transport)

    with pytest.raises(ConnectionResetError):
        transport.read(4)


def test_full_socket_says_that_it_would_block(
    pair: tuple[PlaintextTransport, socket.socket],
) -> None:
    transport, _ = pair

    with pytest.raises(BlockingIOError):
        write_for_ever(transport)


def test_gathered_write_sends_the_buffers_in_order(
    pair_everywhere: tuple[PlaintextTransport, socket.socket],
) -> None:
    transport, far = pair_everywhere

    written = transport.write_gathered([b"ab", bytearray(b"cd"), memoryview(b"ef")])

    assert 6 == written
    assert b"abcdef" == far.recv(100)


def test_a_head_that_waits_for_more_comes_before_it(
    pair_everywhere: tuple[PlaintextTransport, socket.socket], tmp_path: Path
) -> None:
    transport, far = pair_everywhere
    file = RangedFile.holding(tmp_path, LETTERS)

    assert 4 == transport.write_gathered([b"head"], True)
    assert 3 == transport.send_file(FileRange(file, 0, 3))
    assert b"headabc" == far.recv(7, socket.MSG_WAITALL)


def test_file_range_is_sent_from_its_offset(
    pair_everywhere: tuple[PlaintextTransport, socket.socket], tmp_path: Path
) -> None:
    transport, far = pair_everywhere
    file = RangedFile.holding(tmp_path, LETTERS)

    assert 3 == transport.send_file(FileRange(file, 2, 3))
    assert 1 == transport.send_file(FileRange(file, 25, 1))
    assert far.recv(4, socket.MSG_WAITALL) == b"cdez"


def test_file_range_is_sent_without_being_read_into_python(
    pair: tuple[PlaintextTransport, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-2517: from the page cache to the socket, whatever TLS needs beside it."""
    transport, far = pair
    file = RangedFile.holding(tmp_path, LETTERS)

    def refuse(*_: object) -> bytes:
        raise AssertionError("the file was read")

    for name in ("read", "readv", "pread", "preadv"):
        monkeypatch.setattr(os, name, refuse)
    sent = transport.send_file(FileRange(file, 0, 26))
    monkeypatch.undo()

    assert 26 == sent
    assert far.recv(100) == LETTERS


def test_large_file_range_goes_out_in_more_than_one_part(
    pair_everywhere: tuple[PlaintextTransport, socket.socket], tmp_path: Path
) -> None:
    transport, far = pair_everywhere
    content = LETTERS * 10_000
    file = RangedFile.holding(tmp_path, content)
    received = b""
    sent = 0

    while sent < len(content):
        sent += transport.send_file(FileRange(file, sent, len(content) - sent))
        while len(received) < sent:
            received += far.recv(1024 * 1024)

    assert content == received


def test_file_range_of_a_file_without_a_name_is_still_sent(
    pair_everywhere: tuple[PlaintextTransport, socket.socket], tmp_path: Path
) -> None:
    """A segment that was deleted after the fetch found it."""
    transport, far = pair_everywhere
    file = RangedFile.holding(tmp_path, LETTERS)
    assert [] == list(tmp_path.iterdir())

    transport.send_file(FileRange(file, 0, 26))

    assert far.recv(100) == LETTERS


def test_file_range_beyond_the_end_of_its_file_is_an_error(
    pair_everywhere: tuple[PlaintextTransport, socket.socket], tmp_path: Path
) -> None:
    """Kept going, the promised frame could never be completed: the loop would try for ever."""
    transport, _ = pair_everywhere
    file = RangedFile.holding(tmp_path, LETTERS)

    assert 6 == transport.send_file(FileRange(file, 20, 10))
    with pytest.raises(OSError, match="extends past the end of its file"):
        transport.send_file(FileRange(file, 26, 4))


def test_empty_file_range_is_no_error(
    pair_everywhere: tuple[PlaintextTransport, socket.socket], tmp_path: Path
) -> None:
    transport, _ = pair_everywhere

    assert 0 == transport.send_file(FileRange(RangedFile.holding(tmp_path, b""), 0, 0))


def test_close_closes_the_socket(pair: tuple[PlaintextTransport, socket.socket]) -> None:
    transport, far = pair

    transport.close()

    assert b"" == far.recv(1)
    assert transport.fileno() == -1
