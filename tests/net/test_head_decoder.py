"""Frames with heads of any form: the same frames however they are cut, and no stream can hurt."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import InvalidReceiveError, LocalProtocolError
from trionet.net.wire import _framing as framing
from trionet.net.wire._framing import BUFFER_STEP_BYTES_MIN, UNLIMITED, Decoder
from trionet.net.wire._head_decoder import HEAD_BYTES_MAX, HeadDecoder, ReadHead

LIMIT = 1000

payload_lists = st.lists(st.binary(max_size=64), max_size=8)
cuts = st.lists(st.integers(min_value=0, max_value=100), max_size=12)


def two_bytes(data: bytes) -> tuple[int, int] | None:
    """A big-endian size of two bytes."""
    return (2, int.from_bytes(data[:2], "big")) if len(data) >= 2 else None


def header_line(data: bytes) -> tuple[int, int] | None:
    """``size NUMBER`` and a line feed."""
    line, line_feed, _ = data.partition(b"\n")
    return (len(line) + 1, int(line.removeprefix(b"size "))) if line_feed else None


#: By name: how a head is read, how it is written, and what stands after a payload.
FORMS: dict[str, tuple[ReadHead, Callable[[int], bytes], bytes]] = {
    "two bytes": (two_bytes, lambda size: size.to_bytes(2, "big"), b""),
    "a line, and a tail": (header_line, lambda size: b"size %d\n" % size, b"\r\n"),
}
every_form = pytest.mark.parametrize("form", FORMS)


def stream_of(form: str, payloads: list[bytes]) -> bytes:
    _, write_head, tail = FORMS[form]
    return b"".join(write_head(len(payload)) + payload + tail for payload in payloads)


def split(stream: bytes, positions: Iterable[int]) -> list[bytes]:
    """The stream in pieces; positions after its end do not count."""
    inside = sorted({p for p in positions if 0 < p < len(stream)})
    return [stream[a:b] for a, b in zip([0, *inside], [*inside, len(stream)], strict=True)]


def decoder_with(form: str, *pieces: bytes, frame_bytes_max: int = LIMIT) -> HeadDecoder:
    read_head, _, tail = FORMS[form]
    decoder = HeadDecoder(frame_bytes_max, read_head, tail)
    for piece in pieces:
        decoder.receive_data(piece)
    return decoder


def error_of(decoder: Decoder) -> str:
    """What is wrong with the stream; nothing is decoded after that."""
    frames = len(decoder.frames)
    decoder.receive_data(b"\0\1a" * 10)
    assert frames == len(decoder.frames)
    assert not decoder.is_inside_frame
    assert isinstance(decoder.error, InvalidReceiveError)
    return str(decoder.error)


@every_form
@given(payload_lists, cuts)
def test_any_split_gives_the_same_frames(
    form: str, payloads: list[bytes], positions: list[int]
) -> None:
    decoder = decoder_with(form, *split(stream_of(form, payloads), positions))

    assert payloads == list(decoder.frames)
    assert decoder.error is None
    assert not decoder.is_inside_frame
    assert not decoder.wants_fill


@every_form
@given(payload_lists)
def test_byte_by_byte_gives_the_same_frames(form: str, payloads: list[bytes]) -> None:
    stream = stream_of(form, payloads)

    decoder = decoder_with(form, *split(stream, range(len(stream))))

    assert payloads == list(decoder.frames)


@pytest.mark.slow
@every_form
@given(payload_lists, cuts)
def test_any_split_gives_the_same_frames_when_buffers_have_to_grow(
    form: str, payloads: list[bytes], positions: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "BUFFER_STEP_BYTES", 3)
        decoder = decoder_with(form, *split(stream_of(form, payloads), positions))

    assert payloads == list(decoder.frames)


@every_form
@given(payload_lists, st.integers(1, 60), cuts)
def test_a_stream_that_ends_in_a_frame_is_known_to(
    form: str, payloads: list[bytes], missing: int, positions: list[int]
) -> None:
    stream = stream_of(form, payloads) + stream_of(form, [bytes(60)])[:-missing]
    decoder = decoder_with(form, *split(stream, positions))

    assert payloads == list(decoder.frames)
    assert decoder.is_inside_frame
    assert decoder.error is None


@every_form
@given(st.lists(st.binary(max_size=200), max_size=10))
def test_garbage_never_raises_and_never_gives_a_frame_above_the_limit(
    form: str, pieces: list[bytes]
) -> None:
    decoder = decoder_with(form, *pieces, frame_bytes_max=100)

    assert all(len(payload) <= 100 for payload in decoder.frames)
    assert sum(map(len, decoder.frames)) <= sum(map(len, pieces))


@every_form
def test_the_limit_itself_is_allowed_and_one_more_is_not(form: str) -> None:
    """X3."""
    decoder = decoder_with(form, stream_of(form, [bytes(LIMIT), bytes(LIMIT + 1)]))

    assert [bytes(LIMIT)] == list(decoder.frames)
    assert "frame size 1001 is larger than 1000, the limit that frame_bytes_max sets" == error_of(
        decoder
    )


def test_without_a_limit_every_size_that_kafka_could_write_is_accepted() -> None:
    """NetworkReceive.UNLIMITED; a head of any form could announce more."""

    def announced(size: int) -> HeadDecoder:
        return decoder_with("a line, and a tail", b"size %d\n" % size, frame_bytes_max=UNLIMITED)

    assert 2**31 - 1 == announced(2**31 - 1).size
    assert "frame size -1 is negative" == error_of(announced(-1))
    assert "frame size 2147483648 is larger than 2147483647" in error_of(announced(2**31))


def test_a_negative_size_is_an_error() -> None:
    """X2: the decoder's part of it."""
    decoder = decoder_with("a line, and a tail", b"size 3\none\r\nsize -1\n")

    assert [b"one"] == list(decoder.frames)
    assert "frame size -1 is negative" == error_of(decoder)


@pytest.mark.parametrize("cut", range(1, 12))
def test_another_tail_is_an_error_that_quotes_it(cut: int) -> None:
    stream = b"size 3\none\r\n" + b"size 3\ntwo\n\n"

    decoder = decoder_with("a line, and a tail", stream[: 12 + cut], stream[12 + cut :])

    assert [b"one"] == list(decoder.frames)
    assert r"a frame of 3 bytes ends with b'\n\n', not with b'\r\n'" == error_of(decoder)


def test_a_value_error_says_what_is_wrong_with_the_head() -> None:
    decoder = decoder_with("a line, and a tail", b"size one\n")

    assert "invalid literal for int() with base 10: b'one'" == error_of(decoder)


@pytest.mark.parametrize("pieces", [1, 2, HEAD_BYTES_MAX])
def test_a_head_without_an_end_is_not_waited_for(pieces: int) -> None:
    decoder = decoder_with("a line, and a tail")
    data = b"s" * HEAD_BYTES_MAX
    for piece in split(data, range(0, len(data), len(data) // pieces)):
        assert decoder.error is None
        decoder.receive_data(piece)

    assert "the head of a frame is incomplete after 1024 bytes" == error_of(decoder)


def test_a_head_may_be_longer_than_what_gives_its_size() -> None:
    """Two bytes of size, two of something else."""

    def read_head(data: bytes) -> tuple[int, int] | None:
        return (4, data[1]) if len(data) >= 2 else None

    decoder = HeadDecoder(LIMIT, read_head)
    for byte in b"\0\3??one\0\0!!":
        decoder.receive_data(bytes([byte]))

    assert [b"one", b""] == list(decoder.frames)


def test_frames_of_one_size_need_no_head() -> None:
    decoder = HeadDecoder(LIMIT, lambda _: (0, 3))
    decoder.receive_data(b"onetwofo")

    assert [b"one", b"two"] == list(decoder.frames)
    assert decoder.is_inside_frame


@pytest.mark.parametrize("found", [(0, 0), (-3, 3)])
def test_a_head_that_would_never_end_is_a_bug_of_its_reader(found: tuple[int, int]) -> None:
    decoder = HeadDecoder(LIMIT, lambda _: found)

    with pytest.raises(LocalProtocolError, match="a whole frame 1 or more"):
        decoder.receive_data(b"x")


def test_an_error_of_the_reader_is_not_taken_for_the_peers() -> None:
    decoder = HeadDecoder(LIMIT, lambda data: (1, data.no_such_name))  # type: ignore[attr-defined]

    with pytest.raises(AttributeError):
        decoder.receive_data(b"x")


def test_a_frame_in_progress_is_read_into_place() -> None:
    """The socket fills the payload and its tail, and no byte after them."""
    decoder = decoder_with("a line, and a tail", b"size 5\nhe")
    arriving = bytearray(b"llo\r\nsize")
    asked = []

    def read_into(buffer: memoryview) -> int:
        asked.append(len(buffer))
        count = min(2, len(buffer))
        buffer[:count] = arriving[:count]
        del arriving[:count]
        return count

    while decoder.wants_fill:
        assert 5 == decoder.size
        decoder.fill(read_into)

    assert [5, 3, 1] == asked
    assert [b"hello"] == list(decoder.frames)
    with pytest.raises(LocalProtocolError, match="no large frame"):
        decoder.fill(read_into)


def test_an_empty_payload_takes_memory_for_its_tail() -> None:
    """A lease of 0 bytes is none."""
    decoder = decoder_with("a line, and a tail", b"size 0\n")

    assert decoder.wants_fill
    assert 1 == decoder.size


def test_a_size_that_is_only_announced_takes_little_memory() -> None:
    decoder = decoder_with("a line, and a tail", frame_bytes_max=100_000_000)
    tracemalloc.start()
    try:
        decoder.receive_data(b"size 100000000\nx")
        decoder.fill(lambda buffer: 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * BUFFER_STEP_BYTES_MIN
