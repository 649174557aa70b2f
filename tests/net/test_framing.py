"""Bytes to frames: any split of a stream gives the same frames, and no stream can hurt."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.wire import frame
from trionet.errors import InvalidReceiveError, LocalProtocolError
from trionet.net.wire import _framing as framing
from trionet.net.wire._framing import (
    BUFFER_STEP_BYTES,
    BUFFER_STEP_BYTES_MIN,
    UNLIMITED,
    FrameDecoder,
)

LIMIT = 1000

payload_lists = st.lists(st.binary(max_size=64), max_size=8)
cuts = st.lists(st.integers(min_value=0, max_value=100), max_size=12)


def split(stream: bytes, positions: Iterable[int]) -> list[bytes]:
    """The stream in pieces; positions after its end do not count."""
    inside = sorted({p for p in positions if 0 < p < len(stream)})
    return [stream[a:b] for a, b in zip([0, *inside], [*inside, len(stream)], strict=True)]


def decoder_with(*pieces: bytes, frame_bytes_max: int = LIMIT) -> FrameDecoder:
    decoder = FrameDecoder(frame_bytes_max)
    for piece in pieces:
        decoder.receive_data(piece)
    return decoder


def reader_of(data: bytes) -> Callable[[memoryview], int]:
    """A socket that has all of `data`: fills whatever buffer it is given."""
    rest = memoryview(data)

    def read_into(buffer: memoryview) -> int:
        nonlocal rest
        count = min(len(buffer), len(rest))
        buffer[:count] = rest[:count]
        rest = rest[count:]
        return count

    return read_into


def test_frame_is_whole_with_its_last_byte_only() -> None:
    """F1: a 128-byte frame in parts of 4, 64 and 64 bytes."""
    stream = frame(bytes(range(128)))
    decoder = FrameDecoder(LIMIT)

    seen = []
    for piece in (stream[:4], stream[4:68], stream[68:]):
        decoder.receive_data(piece)
        seen.append(len(decoder.frames))

    assert [0, 0, 1] == seen
    assert [bytes(range(128))] == list(decoder.frames)


@given(payload_lists, cuts)
def test_any_split_gives_the_same_frames(payloads: list[bytes], positions: list[int]) -> None:
    stream = b"".join(map(frame, payloads))

    decoder = decoder_with(*split(stream, positions))

    assert payloads == list(decoder.frames)
    assert decoder.error is None
    assert not decoder.is_inside_frame


@given(payload_lists)
def test_byte_by_byte_gives_the_same_frames(payloads: list[bytes]) -> None:
    stream = b"".join(map(frame, payloads))

    decoder = decoder_with(*split(stream, range(len(stream))))

    assert payloads == list(decoder.frames)


@given(payload_lists, cuts)
def test_any_split_gives_the_same_frames_when_buffers_have_to_grow(
    payloads: list[bytes], positions: list[int]
) -> None:
    stream = b"".join(map(frame, payloads))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "BUFFER_STEP_BYTES", 3)
        decoder = decoder_with(*split(stream, positions))

    assert payloads == list(decoder.frames)


@given(payload_lists, st.integers(-(2**31), -1) | st.integers(LIMIT + 1, 2**31 - 1), cuts)
def test_frames_before_an_impossible_size_are_handed_out_however_they_came(
    payloads: list[bytes], size: int, positions: list[int]
) -> None:
    stream = b"".join(map(frame, payloads)) + size.to_bytes(4, "big", signed=True) + b"rest"

    decoder = decoder_with(*split(stream, positions))

    assert payloads == list(decoder.frames)
    assert isinstance(decoder.error, InvalidReceiveError)
    assert str(size) in str(decoder.error)


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_garbage_never_raises_and_never_gives_a_frame_above_the_limit(pieces: list[bytes]) -> None:
    decoder = decoder_with(*pieces, frame_bytes_max=100)

    taken = sum(4 + len(payload) for payload in decoder.frames)
    assert all(len(payload) <= 100 for payload in decoder.frames)
    assert taken <= sum(map(len, pieces))


def test_empty_frame_is_legal() -> None:
    """S10: size 0 is a frame like any other."""
    decoder = decoder_with(frame(b"") + frame(b"a") + frame(b""))

    assert [b"", b"a", b""] == list(decoder.frames)


def test_size_equal_to_the_limit_is_accepted() -> None:
    """X3: the limit itself is allowed."""
    decoder = decoder_with(frame(bytes(LIMIT)))

    assert [bytes(LIMIT)] == list(decoder.frames)


@pytest.mark.parametrize("size", [2, LIMIT + 1, 104_857_601, 2**31 - 1])
def test_without_a_limit_every_size_is_accepted(size: int) -> None:
    """NetworkReceive.UNLIMITED; that it was announced costs no memory."""
    decoder = decoder_with(size.to_bytes(4, "big") + b"a", frame_bytes_max=UNLIMITED)

    assert None is decoder.error
    assert (True, size) == (decoder.wants_fill, decoder.size)


@pytest.mark.parametrize("payload", [b"", b"a", bytes(LIMIT + 1)], ids=len)
def test_without_a_limit_frames_are_whole(payload: bytes) -> None:
    assert [payload] == list(decoder_with(frame(payload), frame_bytes_max=UNLIMITED).frames)


@pytest.mark.parametrize("size", [-1, -(2**31)])
def test_without_a_limit_a_negative_size_is_refused_all_the_same(size: int) -> None:
    """X2."""
    decoder = decoder_with(size.to_bytes(4, "big", signed=True), frame_bytes_max=UNLIMITED)

    assert f"frame size {size} is negative" == str(decoder.error)


def test_size_one_above_the_limit_is_not_accepted() -> None:
    """X3: one more is not, and the message names both numbers and the setting."""
    decoder = decoder_with(frame(bytes(LIMIT + 1)))

    assert not decoder.frames
    assert "frame size 1001 is larger than 1000, the limit that frame_bytes_max sets" == str(
        decoder.error
    )


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"HTTP/1.1 400", "text of another protocol, which begins with 'HTTP'"),
        (b"SSH-2.0", "which begins with 'SSH-'"),
        (b"\x15\x03\x03\0\2", "sets; it looks like TLS"),
        (b"\x16\x03\x01\2\0", "sets; it looks like TLS"),
        (b"\x16\x04\x01\2\0", "the limit that frame_bytes_max sets"),
    ],
)
def test_what_speaks_another_protocol_is_recognised(data: bytes, told: str) -> None:
    decoder = decoder_with(data)

    assert told in str(decoder.error)
    assert ("looks like" in told or "begins with" in told) == ("looks like" in str(decoder.error))


def test_negative_size_is_an_error() -> None:
    """X2: the decoder's part of it."""
    decoder = decoder_with(b"\xff\xff\xff\xff")

    assert "frame size -1 is negative" == str(decoder.error)


def test_size_is_refused_as_soon_as_its_four_bytes_are_known() -> None:
    """P8: before any byte of the body."""
    decoder = decoder_with(b"\x7f", b"\xff\xff")
    assert decoder.error is None

    decoder.receive_data(b"\xff")

    assert decoder.error is not None


def test_what_follows_an_impossible_size_is_dropped() -> None:
    decoder = decoder_with(b"\xff\xff\xff\xff" + frame(b"a"))

    decoder.receive_data(frame(b"b"))

    assert not decoder.frames
    assert not decoder.is_inside_frame


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", False),
        (b"\0", True),
        (b"\0\0\0\2", True),
        (b"\0\0\0\2a", True),
        (b"\0\0\0\2ab", False),
        (b"\0\0\0\2ab\0", True),
        (b"\0\0\0\0", False),
    ],
)
def test_decoder_knows_whether_the_stream_may_end_here(data: bytes, expected: bool) -> None:
    decoder = decoder_with(data)

    assert expected == decoder.is_inside_frame


@given(payload_lists, cuts)
def test_stream_may_end_exactly_where_a_frame_does(
    payloads: list[bytes], positions: list[int]
) -> None:
    stream = b"".join(map(frame, payloads))
    ends = {0}
    for payload in payloads:
        ends.add(max(ends) + 4 + len(payload))
    decoder = FrameDecoder(LIMIT)

    fed = 0
    for piece in split(stream, positions):
        decoder.receive_data(piece)
        fed += len(piece)

        assert decoder.is_inside_frame is (fed not in ends)


def test_large_frame_is_filled_in_place() -> None:
    decoder = decoder_with(frame(bytes(10) + b"abcdef")[:14])
    assert decoder.wants_fill

    count = decoder.fill(reader_of(b"abcdef"))

    assert 6 == count
    assert [bytes(10) + b"abcdef"] == list(decoder.frames)
    assert not decoder.wants_fill


def test_finished_receive_takes_no_more_bytes() -> None:
    """F2: a Receive is finished once."""
    decoder = decoder_with(frame(b"abc"))

    with pytest.raises(LocalProtocolError, match="no large frame"):
        decoder.fill(reader_of(b"x"))


def test_fill_takes_no_byte_of_the_next_frame() -> None:
    decoder = decoder_with(frame(b"abcdef")[:5])

    count = decoder.fill(reader_of(b"bcdef" + frame(b"next")))

    assert 5 == count
    assert [b"abcdef"] == list(decoder.frames)


def test_fill_that_finds_nothing_changes_nothing() -> None:
    decoder = decoder_with(frame(b"abcdef")[:6])

    def blocks(_: memoryview) -> int:
        raise BlockingIOError

    with pytest.raises(BlockingIOError):
        decoder.fill(blocks)
    decoder.fill(reader_of(b"cdef"))

    assert [b"abcdef"] == list(decoder.frames)


def test_end_of_stream_inside_a_large_frame_is_passed_on() -> None:
    """X4: `fill` says 0, and the frame stays unfinished."""
    decoder = decoder_with(frame(b"abcdef")[:6])

    assert 0 == decoder.fill(reader_of(b""))
    assert decoder.is_inside_frame
    assert not decoder.frames


def test_buffer_of_a_large_frame_grows_with_what_has_arrived_and_in_bounded_steps() -> None:
    size = 5 * BUFFER_STEP_BYTES
    payload = bytes(range(256)) * (size // 256)
    decoder = decoder_with(frame(payload)[:4], frame_bytes_max=size)
    read_into = reader_of(payload)
    offered = []

    def recording(buffer: memoryview) -> int:
        offered.append(len(buffer))
        return read_into(buffer)

    while decoder.wants_fill:
        decoder.fill(recording)

    smallest, largest = BUFFER_STEP_BYTES_MIN, BUFFER_STEP_BYTES
    assert [smallest, 3 * smallest, 12 * smallest, 48 * smallest] == offered[:4]
    assert [largest] * 4 == offered[4:8]
    assert size - 64 * smallest - 4 * largest == sum(offered[8:])
    assert [payload] == list(decoder.frames)


def test_announcing_a_large_frame_costs_next_to_nothing() -> None:
    tracemalloc.start()
    try:
        decoder = decoder_with(b"\x06\x40\0\0" + b"x", frame_bytes_max=100 * 1024 * 1024 + 1)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert decoder.wants_fill
    assert held < 4 * BUFFER_STEP_BYTES_MIN


def test_frame_smaller_than_the_first_buffer_gets_its_own_size() -> None:
    decoder = decoder_with(frame(bytes(600))[:10])

    def measuring(buffer: memoryview) -> int:
        assert 594 == len(buffer)
        return 0

    decoder.fill(measuring)
