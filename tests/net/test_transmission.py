"""A Send keeps its place through any partial writes, whatever its chunks are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.ranges import RangedFile
from trionet.errors import LocalProtocolError
from trionet.net.wire._transmission import (
    GATHER_BUFFERS_MAX,
    WRITE_BYTES_MAX,
    Buffer,
    Chunk,
    FileRange,
    Send,
    outgoing,
)


class LimitedTransport:
    """Takes as many bytes per call as it was told to; 0, or nothing left, means it is full."""

    def __init__(self, *budgets: int) -> None:
        self._budgets = list(budgets)
        self.taken = bytearray()
        self.calls: list[str] = []

    def _take(self, call: str, data: bytes) -> int:
        self.calls.append(call)
        budget = self._budgets.pop(0) if self._budgets else 0
        if not budget:
            raise BlockingIOError
        self.taken += data[:budget]
        return min(budget, len(data))

    def write(self, data: Buffer, /) -> int:
        return self._take("write", bytes(data))

    def write_gathered(self, buffers: list[Buffer], has_more: bool = False, /) -> int:
        assert len(buffers) <= GATHER_BUFFERS_MAX
        return self._take("write_more" if has_more else "write_gathered", b"".join(buffers))

    def send_file(self, file_range: FileRange, /) -> int:
        data = file_range.file.read_at(file_range.offset, file_range.count)
        return self._take("send_file", data)


@pytest.fixture
def alphabet(tmp_path: Path) -> RangedFile:
    return RangedFile.holding(tmp_path, b"abcdefghijklmnopqrstuvwxyz")


def test_send_written_in_three_parts_is_complete_after_the_last() -> None:
    """F3: 132 bytes as 4, 64 and 64; remaining 128, 64, 0."""
    data = bytes(range(132))
    transport = LimitedTransport(4, 64, 64)
    send = Send([data])

    seen = []
    for _ in range(3):
        written = send.write_to(transport)
        seen.append((written, send.remaining, send.is_complete))

    assert [(4, 128, False), (64, 64, False), (64, 0, True)] == seen
    assert data == bytes(transport.taken)


def test_complete_send_cannot_be_written_again() -> None:
    send = Send([b"abc"])
    send.write_to(LimitedTransport(3))

    with pytest.raises(LocalProtocolError, match="complete"):
        send.write_to(LimitedTransport(3))


def test_send_of_nothing_cannot_be_written() -> None:
    with pytest.raises(LocalProtocolError, match="complete"):
        Send([b"", b""]).write_to(LimitedTransport(1))


def test_full_transport_takes_nothing_and_the_send_keeps_its_place() -> None:
    send = Send([b"abc"])

    assert 0 == send.write_to(LimitedTransport(0))
    assert 3 == send.remaining


def test_short_write_ends_the_attempt() -> None:
    """What the transport took only in part means "register for writing", not "try again"."""
    transport = LimitedTransport(2, 5)

    assert 2 == Send([b"abcdef"]).write_to(transport)
    assert ["write"] == transport.calls


def test_one_chunk_is_written_with_a_plain_write() -> None:
    transport = LimitedTransport(100)

    Send([b"abc"]).write_to(transport)

    assert ["write"] == transport.calls


def test_neighbouring_buffers_are_gathered_into_one_write() -> None:
    transport = LimitedTransport(100)

    Send([b"ab", bytearray(b"cd"), memoryview(b"ef")]).write_to(transport)

    assert ["write_gathered"] == transport.calls
    assert b"abcdef" == bytes(transport.taken)


def test_more_buffers_than_one_gathering_write_takes_need_another() -> None:
    transport = LimitedTransport(10_000, 10_000)
    chunks: list[Chunk] = [bytes([n % 256]) for n in range(GATHER_BUFFERS_MAX + 7)]
    expected = b"".join(bytes([n % 256]) for n in range(GATHER_BUFFERS_MAX + 7))

    Send(chunks).write_to(transport)

    assert ["write_more", "write_gathered"] == transport.calls
    assert expected == bytes(transport.taken)


def test_file_range_between_buffers_is_sent_in_its_place(alphabet: RangedFile) -> None:
    transport = LimitedTransport(100, 100, 100)

    Send([b"<", FileRange(alphabet, 2, 3), b">"]).write_to(transport)

    assert b"<cde>" == bytes(transport.taken)
    assert ["write_more", "send_file", "write"] == transport.calls


def test_a_head_before_an_empty_file_range_waits_for_nothing(alphabet: RangedFile) -> None:
    transport = LimitedTransport(100)

    Send([b"head", FileRange(alphabet, 2, 0)]).write_to(transport)

    assert ["write"] == transport.calls


def test_one_write_takes_no_more_of_a_large_send_than_its_share(tmp_path: Path) -> None:
    """A peer that reads as fast as we write must not hold the loop for a whole large response."""
    large = RangedFile.holding(tmp_path, b"x" * (WRITE_BYTES_MAX + 10))
    transport = LimitedTransport(*[10 * WRITE_BYTES_MAX] * 9)
    sends: list[list[Chunk]] = [
        [FileRange(large, 0, WRITE_BYTES_MAX + 10)],
        [b"<", FileRange(large, 0, WRITE_BYTES_MAX + 10)],
        [bytearray(WRITE_BYTES_MAX + 10)],
        [b"<", bytes(WRITE_BYTES_MAX), b"y" * 10],
    ]
    for chunks in sends:
        send = Send(chunks)
        size = send.size

        assert WRITE_BYTES_MAX == send.write_to(transport)
        assert size - WRITE_BYTES_MAX == send.write_to(transport)
        assert send.is_complete


def test_file_range_sent_in_part_continues_where_it_stopped(alphabet: RangedFile) -> None:
    transport = LimitedTransport(2, 2, 2)
    send = Send([FileRange(alphabet, 4, 6)])

    written = [send.write_to(transport) for _ in range(3)]

    assert [2, 2, 2] == written
    assert b"efghij" == bytes(transport.taken)
    assert send.is_complete


@pytest.mark.parametrize("place", [0, 1, 2])
def test_empty_file_range_is_passed_over(alphabet: RangedFile, place: int) -> None:
    """The response to a fetch that finds no records has a range of no bytes."""
    chunks: list[Chunk] = [b"ab", b"cd"]
    chunks.insert(place, FileRange(alphabet, 0, 0))
    transport = LimitedTransport(*[100] * 9)
    send = Send(chunks)

    send.write_to(transport)

    assert b"abcd" == bytes(transport.taken)
    assert send.is_complete


def test_empty_buffer_before_a_file_range_is_passed_over(alphabet: RangedFile) -> None:
    transport = LimitedTransport(*[100] * 9)

    Send([b"1234", b"", FileRange(alphabet, 0, 3)]).write_to(transport)

    assert b"1234abc" == bytes(transport.taken)


def test_more_empty_buffers_than_one_gathering_write_takes_are_passed_over() -> None:
    transport = LimitedTransport(*[100] * 9)
    chunks: list[Chunk] = [b""] * (2 * GATHER_BUFFERS_MAX)

    Send([*chunks, b"x"]).write_to(transport)

    assert b"x" == bytes(transport.taken)


def test_send_is_complete_with_its_last_byte_whatever_empty_chunks_follow() -> None:
    """S33: nothing is left to be written, so no readiness for writing is waited for."""
    transport = LimitedTransport(2, 1)
    send = Send([b"abc", b"", b""])
    send.write_to(transport)

    send.write_to(transport)

    assert send.is_complete


@given(
    st.lists(st.binary(max_size=20) | st.tuples(st.integers(0, 20), st.integers(0, 6)), max_size=8),
    st.lists(st.integers(0, 12)),
)
def test_any_partial_writes_write_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[bytes | tuple[int, int]],
    budgets: list[int],
) -> None:
    content = b"abcdefghijklmnopqrstuvwxyz"
    file = RangedFile.holding(tmp_path_factory.getbasetemp(), content)
    expected = b"size"
    chunks: list[Chunk] = [b"size"]
    for part in parts:
        if isinstance(part, bytes):
            chunks.append(part)
            expected += part
        else:
            chunks.append(FileRange(file, *part))
            expected += content[part[0] : sum(part)]
    transport = LimitedTransport(*budgets, *[1000] * 30)
    send = Send(chunks)
    assert len(expected) == send.size

    written = 0
    while not send.is_complete:
        written += send.write_to(transport)
        assert written + send.remaining == send.size

    assert expected == bytes(transport.taken)
    assert len(expected) == written


def test_a_frame_in_one_piece_needs_no_send() -> None:
    assert b"abcd" == outgoing([b"abcd"])


@pytest.mark.parametrize("chunks", [[b"a", b"b"], [bytearray(b"ab")], [memoryview(b"ab")]])
def test_other_frames_are_sends(chunks: list[Chunk]) -> None:
    send = outgoing(chunks)

    assert isinstance(send, Send)
    assert 2 == send.remaining


def test_failure_of_the_connection_is_passed_on() -> None:
    class Broken(LimitedTransport):
        def write(self, data: Buffer, /) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        Send([b"abc"]).write_to(Broken())


def test_chunks_are_let_go_when_they_are_written() -> None:
    """Whoever keeps a finished Send keeps no records alive with it."""
    send = Send([b"abc", b"def"])

    send.write_to(LimitedTransport(100))

    assert [] == send._chunks


def test_printed_forms_show_the_progress(alphabet: RangedFile) -> None:
    send = Send([b"abcdef"])
    send.write_to(LimitedTransport(2))

    assert "Send(2/6 bytes written)" == repr(send)
    number = alphabet.fileno()
    assert f"FileRange(fd={number}, offset=1, count=2)" == repr(FileRange(alphabet, 1, 2))
