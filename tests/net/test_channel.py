"""A channel's one Send, one Receive and staged frames, without a Selector around it."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.ranges import RangedFile
from support.wire import frame, reset, tcp_pair
from trionet.errors import InvalidReceiveError, LocalProtocolError
from trionet.net._channel import READ_BYTES, READ_BYTES_PER_POLL_MAX, Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import UNLIMITED, Frame
from trionet.net.wire._transmission import Buffer, FileRange, Send
from trionet.net.wire._transport import PlaintextTransport

LIMIT = 10 * 1024 * 1024


@pytest.fixture
def pair() -> Iterator[tuple[Channel, socket.socket]]:
    near, far = tcp_pair()
    with near, far:
        yield Channel("c", PlaintextTransport(near), LIMIT), far


def wait_readable(channel: Channel) -> None:
    assert select.select([channel.fd], [], [], 5)[0]


def receive(channel: Channel) -> Frame | None:
    wait_readable(channel)
    return channel.receive()


class ScriptedTransport:
    """Reads come in the pieces that were planned; None stands for "nothing now"."""

    def __init__(self, *pieces: bytes | None) -> None:
        self._pieces = list(pieces)
        self.reads = 0

    def read(self, bytes_max: int, /) -> bytes:
        self.reads += 1
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        if piece is None:
            raise BlockingIOError
        if len(piece) > bytes_max:
            self._pieces.insert(0, piece[bytes_max:])
        return piece[:bytes_max]

    def read_into(self, buffer: memoryview, /) -> int:
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def fileno(self) -> int:
        return -1

    def write(self, data: Buffer, /) -> int:
        raise NotImplementedError

    def write_gathered(self, buffers: list[Buffer], has_more: bool = False, /) -> int:
        raise NotImplementedError

    def send_file(self, file_range: FileRange, /) -> int:
        raise NotImplementedError

    def finish_connect(self) -> bool:
        return True

    def peer_has_ended(self) -> bool:
        return not self._pieces

    def has_unread(self) -> bool:
        return any(self._pieces)

    def close(self) -> None: ...


def everything(channel: Channel) -> list[bytes]:
    """What a poll after the other takes from a channel up to the end of its stream."""
    payloads: list[bytes] = []
    while True:
        try:
            payload = channel.take_staged()
            if payload is None:
                payload = channel.receive()
        except BlockingIOError:
            continue
        except EOFError:
            return payloads
        if payload is not None:
            payloads.append(bytes(payload))


def test_bytes_are_counted_as_they_arrive(pair: tuple[Channel, socket.socket]) -> None:
    """F1: 0, 4, 68, 132; a frame only at 132."""
    channel, far = pair
    stream = frame(bytes(range(128)))

    seen: list[tuple[int, Frame | None]] = []
    for piece in (stream[:4], stream[4:68], stream[68:]):
        far.sendall(piece)
        seen.append((channel.bytes_received, receive(channel)))

    assert [(0, None), (4, None), (68, bytes(range(128)))] == seen
    assert 132 == channel.bytes_received


def test_receive_is_given_once(pair: tuple[Channel, socket.socket]) -> None:
    """F2: whole, once; then the channel has no current receive."""
    channel, far = pair
    far.sendall(frame(b"abc"))

    assert b"abc" == receive(channel)
    assert channel.take_staged() is None
    assert channel.end_of_stream_reason is CloseReason.PEER_CLOSED
    with pytest.raises(BlockingIOError):
        channel.receive()


def test_frames_of_one_read_are_staged_after_the_first(
    pair: tuple[Channel, socket.socket],
) -> None:
    channel, far = pair
    far.sendall(frame(b"1") + frame(b"2") + frame(b"3"))

    assert b"1" == receive(channel)
    assert [b"2", b"3"] == list(channel.staged)
    assert b"2" == channel.take_staged()
    assert b"3" == channel.take_staged()
    assert channel.take_staged() is None


def test_nothing_is_read_for_a_large_frame_while_others_are_staged(
    pair: tuple[Channel, socket.socket],
) -> None:
    """At most the frames of one read are staged."""
    channel, far = pair
    far.sendall(frame(b"1") + frame(b"2") + frame(bytes(3 * READ_BYTES)))
    assert b"1" == receive(channel)

    assert READ_BYTES == channel.bytes_received


def test_frames_before_a_large_one_that_never_ends_are_given(
    pair: tuple[Channel, socket.socket],
) -> None:
    """P43: the end of the stream must not overtake the whole frames before it."""
    channel, far = pair
    far.sendall(frame(b"1") + frame(b"2") + frame(bytes(3 * READ_BYTES))[:-1])
    far.shutdown(socket.SHUT_WR)

    assert b"1" == receive(channel)
    assert b"2" == channel.take_staged()
    assert [] == everything(channel)
    assert channel.end_of_stream_reason is CloseReason.PEER_CLOSED_IN_FRAME


def test_large_frame_goes_on_in_the_same_call(pair: tuple[Channel, socket.socket]) -> None:
    channel, far = pair
    payload = bytes(range(256)) * 64
    far.sendall(frame(payload))

    received = receive(channel)
    while received is None:
        received = receive(channel)

    assert payload == received


def test_one_call_reads_a_megabyte_of_a_large_frame_at_most() -> None:
    """So that no channel keeps the others waiting."""
    payload = bytes(5 * READ_BYTES_PER_POLL_MAX)
    channel = Channel("c", ScriptedTransport(frame(payload)), LIMIT)

    assert channel.receive() is None
    first = channel.bytes_received
    assert channel.receive() is None

    assert READ_BYTES + READ_BYTES_PER_POLL_MAX <= first <= READ_BYTES + 2 * READ_BYTES_PER_POLL_MAX
    assert channel.bytes_received - first <= 2 * READ_BYTES_PER_POLL_MAX
    assert [payload] == everything(channel)


@pytest.mark.parametrize("beyond", [1, 300])
@pytest.mark.parametrize("power", [16, 24])
def test_large_frame_is_not_taken_for_the_few_bytes_of_it_that_come_first(
    power: int, beyond: int
) -> None:
    """They are as many as the lower half of its size says, or all of it but the first byte."""
    payload = bytes(range(256)) * 2 ** (power - 8) + bytes(beyond)
    stream = frame(payload)
    pieces = stream[: 4 + beyond], stream[4 + beyond :]
    channel = Channel("c", ScriptedTransport(*pieces), 2**25)

    assert [payload] == everything(channel)


@pytest.mark.parametrize("cut", range(1, 4))
def test_size_that_comes_in_two_reads(pair: tuple[Channel, socket.socket], cut: int) -> None:
    channel, far = pair
    stream = frame(b"abc") + frame(b"d")
    far.sendall(stream[:cut])
    assert receive(channel) is None
    far.sendall(stream[cut:])

    assert b"abc" == receive(channel)
    assert b"d" == channel.take_staged()
    assert len(stream) == channel.bytes_received


@given(
    st.lists(st.binary(max_size=40) | st.integers(3000, 9000).map(bytes), max_size=6),
    st.lists(st.integers(0, 60) | st.integers(0, 30_000), max_size=12),
    st.sets(st.integers(0, 20)),
)
def test_any_segmentation_of_the_stream_gives_the_same_frames(
    payloads: list[bytes], positions: list[int], pauses: set[int]
) -> None:
    stream = b"".join(map(frame, payloads))
    inside = sorted({p for p in positions if 0 < p < len(stream)})
    pieces: list[bytes | None] = []
    for number, (a, b) in enumerate(zip([0, *inside], [*inside, len(stream)], strict=True)):
        if number in pauses:
            pieces.append(None)
        if a < b:
            pieces.append(stream[a:b])
    channel = Channel("c", ScriptedTransport(*pieces), LIMIT)

    assert payloads == everything(channel)
    assert channel.end_of_stream_reason is CloseReason.PEER_CLOSED
    assert len(stream) == channel.bytes_received


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 6])
def test_end_of_stream_inside_a_frame_gives_no_frame(
    pair: tuple[Channel, socket.socket], cut: int
) -> None:
    """X4: inside the size, after it, inside the payload."""
    channel, far = pair
    far.sendall(frame(b"abc")[:cut])
    assert receive(channel) is None
    far.shutdown(socket.SHUT_WR)

    with pytest.raises(EOFError):
        receive(channel)
    assert channel.end_of_stream_reason is CloseReason.PEER_CLOSED_IN_FRAME


def test_end_of_stream_between_frames_is_the_regular_end(
    pair: tuple[Channel, socket.socket],
) -> None:
    channel, far = pair
    far.shutdown(socket.SHUT_WR)

    with pytest.raises(EOFError):
        receive(channel)
    assert channel.end_of_stream_reason is CloseReason.PEER_CLOSED


def test_reset_raises_its_own_error(pair: tuple[Channel, socket.socket]) -> None:
    channel, far = pair
    reset(far)

    with pytest.raises(ConnectionResetError):
        receive(channel)


@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_impossible_size_shows_after_the_frames_before_it(
    pair: tuple[Channel, socket.socket], size: int
) -> None:
    channel, far = pair
    far.sendall(frame(b"1") + frame(b"2") + size.to_bytes(4, "big", signed=True))

    assert b"1" == receive(channel)
    assert b"2" == channel.take_staged()
    with pytest.raises(InvalidReceiveError):
        channel.take_staged()


@pytest.mark.parametrize("payload", [b"a", bytes(200_000)], ids=len)
def test_a_channel_without_a_limit_receives_frames_of_any_size(payload: bytes) -> None:
    """NetworkReceive.UNLIMITED: a frame that one read brings, and one that is read into place."""
    channel = Channel("c", ScriptedTransport(frame(payload)), UNLIMITED)

    received = channel.receive()

    assert payload == received


def test_a_channel_without_a_limit_refuses_a_negative_size() -> None:
    """X2."""
    channel = Channel("c", ScriptedTransport(b"\xff\xff\xff\xff"), UNLIMITED)

    with pytest.raises(InvalidReceiveError, match="frame size -1 is negative"):
        channel.receive()


def test_frame_that_arrives_whole_but_is_too_large_is_refused() -> None:
    """The path of one read, one frame checks the limit too."""
    channel = Channel("c", ScriptedTransport(frame(b"12345678")), 7)

    with pytest.raises(InvalidReceiveError):
        channel.receive()


def test_second_send_is_refused_while_one_is_in_progress(
    pair: tuple[Channel, socket.socket],
) -> None:
    """F4: one Send per channel."""
    channel, _ = pair
    send = Send([bytes(64 * 1024 * 1024)])
    assert not channel.begin_send(send)

    with pytest.raises(LocalProtocolError, match="already has a Send"):
        channel.begin_send(Send([b"abcd"]))
    assert send is channel.send


def test_next_send_is_welcome_when_the_first_is_complete(
    pair: tuple[Channel, socket.socket],
) -> None:
    channel, far = pair

    assert channel.begin_send(Send([b"abcd"]))
    assert channel.begin_send(Send([b"efgh"]))

    assert far.recv(8, socket.MSG_WAITALL) == b"abcdefgh"
    assert channel.send is None
    assert 8 == channel.bytes_sent


def test_a_frame_in_one_piece_is_sent_as_it_is(pair: tuple[Channel, socket.socket]) -> None:
    channel, far = pair

    assert channel.begin_send(b"abcd")

    assert far.recv(4, socket.MSG_WAITALL) == b"abcd"
    assert channel.send is None
    assert 4 == channel.bytes_sent


def test_what_the_socket_did_not_take_of_a_frame_in_one_piece_is_the_send_in_progress(
    pair: tuple[Channel, socket.socket],
) -> None:
    """F4."""
    channel, far = pair
    content = bytes(range(256)) * 40_000

    assert not channel.begin_send(content)
    assert channel.send is not None
    assert len(content) == channel.bytes_sent + channel.send.remaining
    with pytest.raises(LocalProtocolError, match="already has a Send"):
        channel.begin_send(b"efgh")

    received = far.recv(1_000_000)
    while not channel.write():
        received += far.recv(1_000_000)
    while len(received) < len(content):
        received += far.recv(1_000_000)
    assert content == received
    assert len(content) == channel.bytes_sent


def test_a_full_socket_takes_nothing_of_a_frame_in_one_piece(
    pair: tuple[Channel, socket.socket],
) -> None:
    channel, _ = pair
    with contextlib.suppress(BlockingIOError):
        while True:
            channel.transport.write(bytes(100_000))

    assert not channel.begin_send(b"abcd")

    assert channel.send is not None
    assert 4 == channel.send.remaining
    assert 0 == channel.bytes_sent


def test_frame_of_no_bytes_is_refused(pair: tuple[Channel, socket.socket]) -> None:
    channel, _ = pair

    with pytest.raises(LocalProtocolError, match="empty frame"):
        channel.begin_send(b"")


def test_send_that_was_written_already_is_refused(pair: tuple[Channel, socket.socket]) -> None:
    channel, _ = pair
    send = Send([b"abcd"])
    channel.begin_send(send)

    with pytest.raises(LocalProtocolError, match="complete"):
        channel.begin_send(send)


def test_partial_writes_continue_until_the_last_byte(
    pair: tuple[Channel, socket.socket], tmp_path: Path
) -> None:
    """S11: bytes are counted as they leave."""
    channel, far = pair
    with socket.socket(fileno=os.dup(channel.fd)) as near:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * 1024)
    content = bytes(range(256)) * 800
    file = RangedFile.holding(tmp_path, content)
    body = content[:100_000]
    expected = b"head" + body + content[5:150_005] + b"tail"
    is_complete = channel.begin_send(
        Send([b"head", memoryview(body), FileRange(file, 5, 150_000), b"tail"])
    )
    received = b""

    counts = [channel.bytes_sent]
    while len(received) < len(expected):
        readable, writable, _ = select.select([far], [] if is_complete else [channel.fd], [], 5)
        if readable:
            received += far.recv(1024 * 1024)
        if writable:
            is_complete = channel.write()
            counts.append(channel.bytes_sent)

    assert expected == received
    assert len(expected) == channel.bytes_sent
    assert sorted(counts) == counts
    assert len(set(counts)) > 3


def test_printed_form_has_id_state_and_what_waits(pair: tuple[Channel, socket.socket]) -> None:
    channel, _ = pair
    assert "<Channel c READY NOT_MUTED staged=0 send=None>" == repr(channel)

    channel.muting.mute()
    channel.staged.append(b"x")
    assert "<Channel c READY MUTED staged=1 send=None>" == repr(channel)

    channel.end(CloseReason.IDLE, "")
    assert "<Channel c CLOSED MUTED staged=0 send=None>" == repr(channel)
    assert not channel.is_open
