"""The TLS transport after the handshake: bytes in both directions, over a real connection."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.ranges import RangedFile
from support.tls import TlsClient, client_context, server_context, shake_hands
from support.wire import reset, tcp_pair
from trionet.net.tls._tls_transport import WRITE_BYTES_PER_SEND, TlsError, TlsTransport
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._transmission import WRITE_BYTES_MAX, FileRange, Send

LETTERS = b"abcdefghijklmnopqrstuvwxyz"
RECORD_BYTES_MAX = 16 * 1024


@pytest.fixture
def pair() -> Iterator[tuple[TlsTransport, TlsClient]]:
    """A transport and its client after their handshake."""
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        shake_hands(transport, client)
        yield transport, client


def wait_readable(transport: TlsTransport) -> None:
    assert select.select([transport], [], [], 5)[0]


def arrived(transport: TlsTransport, count: int) -> bytes:
    """The next `count` bytes, each read as the loop would do it."""
    received = b""
    while len(received) < count:
        if not transport.has_buffered:
            wait_readable(transport)
        try:
            received += transport.read(count - len(received))
        except BlockingIOError:
            continue
    return received


def write_all(transport: TlsTransport, client: TlsClient, send: Send) -> bytes:
    """Write a Send while the client reads; what the client got."""
    received = b""
    while send.remaining:
        send.write_to(transport)
        while select.select([client.sock], [], [], 0)[0]:
            client.feed()
            received += decrypted(client)
    return received + client.receive(send.size - len(received))


def write_for_ever(transport: TlsTransport, size: int) -> None:
    """Write until the socket takes nothing more."""
    try:
        while True:
            transport.write(bytes(size))
    except BlockingIOError:
        pass


def decrypted(client: TlsClient) -> bytes:
    data = b""
    while True:
        try:
            data += client.tls.read(1024 * 1024)
        except ssl.SSLWantReadError:
            return data


def test_reading_nothing_does_not_wait(pair: tuple[TlsTransport, TlsClient]) -> None:
    transport, _ = pair

    with pytest.raises(BlockingIOError):
        transport.read(10)
    with pytest.raises(BlockingIOError):
        transport.read_into(memoryview(bytearray(10)))


def test_data_travels_both_ways(pair: tuple[TlsTransport, TlsClient]) -> None:
    transport, client = pair
    client.send(b"request")

    assert b"request" == arrived(transport, 7)
    assert 8 == transport.write(b"response")
    assert b"response" == client.receive(8)


def test_what_a_small_read_leaves_of_a_record_is_buffered(
    pair: tuple[TlsTransport, TlsClient],
) -> None:
    transport, client = pair
    client.send(b"abcdef")
    wait_readable(transport)

    seen = [(transport.read(4), transport.has_buffered) for _ in range(2)]

    assert [(b"abcd", True), (b"ef", False)] == seen


def test_records_that_arrived_together_are_buffered_until_each_is_read(
    pair: tuple[TlsTransport, TlsClient],
) -> None:
    """P56: what is in the TLS buffer is there to be read, with no further byte from the socket."""
    transport, client = pair
    client.sock.sendall(client.encrypt(b"one") + client.encrypt(b"two"))
    wait_readable(transport)

    seen = [(transport.read(100), transport.has_buffered) for _ in range(2)]

    assert [(b"one", True), (b"two", False)] == seen


@pytest.mark.parametrize("cut", [1, 4, 5, 6, 20])
def test_a_part_of_a_record_counts_as_buffered_no_more_than_once(
    pair: tuple[TlsTransport, TlsClient], cut: int
) -> None:
    """S39, S40: after one visit without progress only the socket can bring some."""
    transport, client = pair
    first, second = client.encrypt(b"one"), client.encrypt(b"two")
    client.sock.sendall(first + second[:cut])
    wait_readable(transport)

    assert b"one" == transport.read(100)
    buffered = [transport.has_buffered]
    with pytest.raises(BlockingIOError):
        transport.read(100)
    buffered.append(transport.has_buffered)
    assert [True, False] == buffered

    client.sock.sendall(second[cut:])
    wait_readable(transport)
    assert b"two" == transport.read(100)


def test_a_large_buffer_is_filled_in_one_call(pair: tuple[TlsTransport, TlsClient]) -> None:
    """T12: one poll reads all 80 KB that are there."""
    transport, client = pair
    content = bytes(range(256)) * 320
    client.send(content)
    buffer = bytearray(len(content))
    wait_readable(transport)

    count = transport.read_into(memoryview(buffer))
    while count < len(content):
        wait_readable(transport)
        count += transport.read_into(memoryview(buffer)[count:])

    assert content == buffer


def test_read_into_an_empty_buffer_is_nothing(pair: tuple[TlsTransport, TlsClient]) -> None:
    transport, _ = pair

    assert 0 == transport.read_into(memoryview(b""))


@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=10), st.data())
def test_however_records_are_cut_on_the_way_the_bytes_are_the_same(
    messages: list[bytes], data: st.DataObject
) -> None:
    """T13: small reads, small segments, large records: the data stays intact."""
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        shake_hands(transport, client)
        ciphertext = b"".join(map(client.encrypt, messages))
        cut = data.draw(st.integers(0, len(ciphertext)))
        whole = b"".join(messages)

        client.sock.sendall(ciphertext[:cut])
        received = b""
        while transport.has_buffered or select.select([near], [], [], 0)[0]:
            try:
                received += transport.read(data.draw(st.integers(1, 100)))
            except BlockingIOError:
                continue
        client.sock.sendall(ciphertext[cut:])
        received += arrived(transport, len(whole) - len(received))

        assert whole == received
        assert not transport.has_buffered


def test_gathered_write_sends_the_buffers_in_order(pair: tuple[TlsTransport, TlsClient]) -> None:
    """T24: a gathering write keeps order and lengths, whatever the kind of buffer."""
    transport, client = pair

    written = transport.write_gathered([b"ab", bytearray(b"cd"), b"", memoryview(b"xefx")[1:3]])

    assert 6 == written
    assert b"abcdef" == client.receive(6)


@pytest.mark.parametrize("has_sendmsg", [True, False])
def test_a_write_that_the_socket_does_not_take_is_taken_up_where_it_stopped(
    pair: tuple[TlsTransport, TlsClient], monkeypatch: pytest.MonkeyPatch, has_sendmsg: bool
) -> None:
    """S33, T13: bytes count as written when their records have left; none is sent twice."""
    monkeypatch.setattr("trionet.net.wire._transport._HAS_SENDMSG", has_sendmsg)
    transport, client = pair
    content = LETTERS * 400_000
    send = Send([content[:10], content[10:5_000_000], bytearray(content[5_000_000:])])

    while send.remaining:
        before = send.remaining
        send.write_to(transport)
        if before == send.remaining:
            break
    assert 0 < send.remaining < len(content)

    assert content == write_all(transport, client, send)
    assert 0 == send.remaining


@pytest.mark.parametrize("size", [1, 100, RECORD_BYTES_MAX, RECORD_BYTES_MAX + 1, 1_000_000])
def test_a_send_of_any_size_arrives(pair: tuple[TlsTransport, TlsClient], size: int) -> None:
    transport, client = pair
    content = (LETTERS * (size // 26 + 1))[:size]
    send = Send([content])

    assert content == write_all(transport, client, send)


def test_writing_to_a_full_socket_says_that_it_would_block(
    pair: tuple[TlsTransport, TlsClient],
) -> None:
    transport, _ = pair
    write_for_ever(transport, 100)

    with pytest.raises(BlockingIOError):
        transport.write(bytes(100))


def test_a_slow_reader_makes_us_keep_one_bounded_piece_of_ciphertext(
    pair: tuple[TlsTransport, TlsClient],
) -> None:
    transport, _ = pair
    write_for_ever(transport, 64 * 1024 * 1024)

    assert 0 < sum(map(len, transport._unsent)) < WRITE_BYTES_PER_SEND * 1.01


def test_a_reader_as_fast_as_we_are_is_written_one_bounded_piece_at_a_time(
    pair: tuple[TlsTransport, TlsClient],
) -> None:
    """A frame in one piece is no Send that would have a bound of its own."""
    transport, client = pair
    content = memoryview(bytes(64 * WRITE_BYTES_MAX))
    counts = []

    def read_all() -> None:
        while client.sock.recv(1024 * 1024):
            pass

    reader = threading.Thread(target=read_all)
    reader.start()
    while content:
        select.select([], [transport], [], 5)
        try:
            counts.append(transport.write(content))
        except BlockingIOError:
            continue
        content = content[counts[-1] :]
    transport.close()
    reader.join()

    assert max(counts) <= WRITE_BYTES_MAX


def test_file_range_is_sent_from_its_offset(
    pair: tuple[TlsTransport, TlsClient], tmp_path: Path
) -> None:
    transport, client = pair
    file = RangedFile.holding(tmp_path, LETTERS)

    assert 3 == transport.send_file(FileRange(file, 2, 3))
    assert 0 == transport.send_file(FileRange(file, 2, 0))
    assert b"cde" == client.receive(3)


def test_large_file_range_arrives_whole_between_buffers(
    pair: tuple[TlsTransport, TlsClient], tmp_path: Path
) -> None:
    transport, client = pair
    content = LETTERS * 200_000
    file = RangedFile.holding(tmp_path, content)
    send = Send([b"head", FileRange(file, 0, len(content)), b"tail"])

    assert b"head" + content + b"tail" == write_all(transport, client, send)


def test_large_file_range_is_read_in_large_pieces(
    pair: tuple[TlsTransport, TlsClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-9110: without sendfile, each is read once, encrypted and sent."""
    transport, client = pair
    content = LETTERS * 40_000
    send = Send([FileRange(RangedFile.holding(tmp_path, content), 0, len(content))])
    counts = []
    pread = os.pread

    def read(fd: int, count: int, offset: int) -> bytes:
        counts.append(count)
        return pread(fd, count, offset)

    monkeypatch.setattr(os, "pread", read)
    assert content == write_all(transport, client, send)

    assert len(content) == sum(counts)
    assert 32 * 1024 <= min(counts[:-1]) <= max(counts) <= WRITE_BYTES_PER_SEND


def test_file_range_beyond_the_end_of_its_file_is_an_error(
    pair: tuple[TlsTransport, TlsClient], tmp_path: Path
) -> None:
    transport, _ = pair
    file = RangedFile.holding(tmp_path, LETTERS)

    with pytest.raises(OSError, match="extends past the end of its file"):
        transport.send_file(FileRange(file, 20, 10))


@pytest.mark.parametrize("graceful", [True, False])
def test_the_end_of_the_stream_reads_as_nothing_each_time(
    pair: tuple[TlsTransport, TlsClient], graceful: bool
) -> None:
    transport, client = pair
    client.send(b"last words")
    if graceful:
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.unwrap()
        client.flush()
    client.sock.shutdown(socket.SHUT_WR)

    assert b"last words" == arrived(transport, 10)
    for _ in range(2):
        wait_readable(transport)
        assert b"" == transport.read(10)
        assert 0 == transport.read_into(memoryview(bytearray(10)))


def test_reset_raises(pair: tuple[TlsTransport, TlsClient]) -> None:
    transport, client = pair
    reset(client.sock)
    wait_readable(transport)

    with pytest.raises(ConnectionResetError):
        transport.read(4)


def test_a_broken_record_is_an_error_of_its_own(pair: tuple[TlsTransport, TlsClient]) -> None:
    transport, client = pair
    record = bytearray(client.encrypt(b"some data"))
    record[-1] ^= 1
    client.sock.sendall(record)
    wait_readable(transport)

    with pytest.raises(TlsError, match=r"TLS: .*bad record mac") as caught:
        transport.read(4)

    assert CloseReason.TLS_FAILED is caught.value.close_reason


def test_whatever_a_peer_sends_as_records_is_an_end_or_one_error(
    pair: tuple[TlsTransport, TlsClient],
) -> None:
    transport, client = pair
    client.sock.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
    wait_readable(transport)
    buffer = memoryview(bytearray(10))

    with pytest.raises(TlsError):
        transport.read_into(buffer)
    assert 0 == transport.read_into(buffer)
    with pytest.raises(TlsError):
        transport.write(b"x")


def test_close_says_goodbye_and_closes_the_socket(pair: tuple[TlsTransport, TlsClient]) -> None:
    """T23: the engine is told, not only the socket."""
    transport, client = pair

    transport.close()

    assert transport.fileno() == -1
    client.feed()
    assert b"" == client.tls.read(1)
    assert not client.feed()


def test_sends_before_a_close_arrive_before_it(pair: tuple[TlsTransport, TlsClient]) -> None:
    """T18: 20 messages and then a close: the peer reads 20 messages."""
    transport, client = pair
    for number in range(20):
        transport.write(b"%04d" % number)
    transport.close()

    assert b"".join(b"%04d" % number for number in range(20)) == client.receive(1_000)


def test_close_never_waits_nor_fails(pair: tuple[TlsTransport, TlsClient]) -> None:
    transport, _ = pair
    write_for_ever(transport, 1_000_000)

    transport.close()
    transport.close()

    assert transport.fileno() == -1


def test_closing_with_buffered_records_leaves_nothing_behind(
    pair: tuple[TlsTransport, TlsClient],
) -> None:
    """S38: closing a transport with bytes in its buffers closes it."""
    transport, client = pair
    client.sock.sendall(client.encrypt(b"one") + client.encrypt(b"two")[:7])
    wait_readable(transport)
    assert b"one" == transport.read(100)
    assert transport.has_buffered

    transport.close()

    assert transport.fileno() == -1


def test_the_cipher_is_known_after_the_handshake() -> None:
    """S37: the suite and the version are there to be counted by."""
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        assert ("", "") == transport.cipher

        shake_hands(transport, client)

        suite = client.tls.cipher()
        assert suite is not None
        assert (suite[0], client.tls.version()) == transport.cipher


def test_versions_1_2_and_1_3_are_spoken() -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        near, far = tcp_pair()
        context = client_context()
        context.maximum_version = context.minimum_version = version
        with near, far:
            transport, client = TlsTransport(near, server_context()), TlsClient(far, context)
            shake_hands(transport, client)
            client.send(b"x" * 100_000)

            assert b"x" * 100_000 == arrived(transport, 100_000)
            assert transport.cipher[1] == version.name.replace("_", ".")
