"""A batch that is built record by record, as a producer's accumulator does it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import LocalProtocolError
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import HEADER_SIZE, check_crc, read_header
from trionet.protocol.records._records import batch_chunks, decode_batch, encode_batch
from trionet.protocol.records._types import NewRecord

pytestmark = pytest.mark.usefixtures("each_implementation")

NOW = 1_700_000_000_000

values = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=90), values), max_size=3)
new_records = st.lists(
    st.tuples(st.integers(-(2**62), 2**62 - 1), values, values, headers), min_size=1
)


@given(new_records)
def test_size_is_known_before_the_batch_is_closed(rows: list[NewRecord]) -> None:
    builder = implementation.writer.BatchBuilder()

    assert HEADER_SIZE == builder.size
    for count, row in enumerate(rows, 1):
        builder.append(*row)
        batch = b"".join(batch_chunks(builder))

        assert encode_batch(rows[:count]) == batch
        assert (len(batch), count) == (builder.size, builder.count)


@given(new_records)
def test_there_is_room_for_what_keeps_the_batch_within_its_size(rows: list[NewRecord]) -> None:
    size = len(encode_batch(rows))
    exact = implementation.writer.BatchBuilder(size)
    tight = implementation.writer.BatchBuilder(size - 1)
    for row in rows[:-1]:
        exact.append(*row)
        tight.append(*row)

    assert exact.has_room_for(*rows[-1])
    assert (len(rows) == 1) == tight.has_room_for(*rows[-1])


def test_batch_without_records_has_room_for_any() -> None:
    assert implementation.writer.BatchBuilder(100).has_room_for(NOW, None, bytes(1000))


@pytest.mark.parametrize("size", [63, 64, 8191, 8192, 16_384, 70_000, 1 << 20, 3 << 20])
def test_every_length_of_a_length_is_counted(size: int) -> None:
    builder = implementation.writer.BatchBuilder()
    for number in range(3):
        builder.append(NOW + number, b"k" * size, b"v" * size, [("h", b"w" * size)])
    batch = b"".join(batch_chunks(builder))

    assert builder.size == len(batch)
    assert [
        (number, NOW + number, b"k" * size, b"v" * size, [("h", b"w" * size)])
        for number in range(3)
    ] == decode_batch(batch)


def test_large_batch_comes_in_pieces() -> None:
    builder = implementation.writer.BatchBuilder()
    for _ in range(3000):
        builder.append(NOW, None, b"v" * 100)
    chunks = batch_chunks(builder)

    assert max(map(len, chunks)) <= 64 * 1024 + 110
    assert check_crc(b"".join(chunks), 0, read_header(b"".join(chunks)))


@pytest.mark.parametrize(
    ("row", "error"),
    [
        pytest.param((NOW, "text", b"v"), TypeError, id="key"),
        pytest.param((NOW, b"k", 5), TypeError, id="value"),
        pytest.param((NOW, b"k", b"v", [("h", 5)]), TypeError, id="header"),
        pytest.param((2**63, b"k", b"v"), LocalProtocolError, id="large timestamp"),
        pytest.param((-(2**63) - 1, b"k", b"v"), LocalProtocolError, id="small timestamp"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 5])
def test_record_that_is_refused_leaves_nothing_behind(
    row: tuple[int, bytes, bytes], error: type[Exception], before: int
) -> None:
    builder = implementation.writer.BatchBuilder()
    rows: list[NewRecord] = [(NOW, None, b"v", ())] * before
    for kept in rows:
        builder.append(*kept)
    for _ in range(2):
        with pytest.raises(error):
            builder.append(*row)
        with pytest.raises(error):
            builder.append_at(100, *row)
    builder.append(NOW + 9, None, b"last", ())

    assert encode_batch([*rows, (NOW + 9, None, b"last", ())]) == b"".join(batch_chunks(builder))


@pytest.mark.parametrize(
    ("first", "second"), [(-1, -(2**63) - 1), (0, -(2**63) - 1), (1, 2**63), (2**62, 2**63)]
)
def test_a_later_timestamp_fits_into_64_bits_as_the_first_does(first: int, second: int) -> None:
    """Also where its difference from the first does."""
    builder = implementation.writer.BatchBuilder()
    builder.append(first, None, b"v")
    for refuse in (builder.append, builder.has_room_for):
        with pytest.raises(LocalProtocolError, match=f"^timestamp {second} does not fit"):
            refuse(second, None, b"v")

    assert encode_batch([(first, None, b"v", ())]) == b"".join(batch_chunks(builder))


@pytest.mark.parametrize("timestamp", ["1", None])
def test_a_timestamp_is_an_int(timestamp: Any) -> None:
    with pytest.raises(TypeError):
        encode_batch([(timestamp, None, b"v", ())])


@pytest.mark.parametrize(
    "headers",
    [
        (("a", b"12"), ("b", None)),
        [["a", b"12"], ["b", None]],
        [("a", bytearray(b"12")), ("b", None)],
        [["a", memoryview(b"1.2.")[::2]], ("b", None)],
    ],
)
def test_headers_are_tuples_or_lists_of_names_and_bytes(headers: Any) -> None:
    row = (NOW, None, b"v", headers)
    batch = encode_batch([row])

    assert [(0, NOW, None, b"v", [("a", b"12"), ("b", None)])] == decode_batch(batch)
    exact = implementation.writer.BatchBuilder(2 * len(batch) - HEADER_SIZE)
    exact.append(*row)
    assert exact.has_room_for(*row)


@pytest.mark.parametrize(
    "headers",
    [
        {("a", b"1")},
        {("a", b"1"): 2},
        iter([("a", b"1")]),
        "ab",
        7,
        [{"a", b"1"}],
        ["ab"],
        [iter(("a", b"1"))],
        [("a",)],
        [["a", b"1", 2]],
        [(b"a", b"1")],
        [("a", "1")],
        [None],
    ],
)
def test_headers_of_another_form_are_refused(headers: Any) -> None:
    with pytest.raises(TypeError):
        encode_batch([(NOW, None, b"v", headers)])


@pytest.mark.parametrize("field", [memoryview(bytes(80)).cast("q"), bytearray(80)])
def test_room_is_counted_in_bytes(field: Any) -> None:
    row = (NOW, field, field, ())
    size = len(encode_batch([row, row]))
    exact = implementation.writer.BatchBuilder(size)
    tight = implementation.writer.BatchBuilder(size - 1)
    for builder in (exact, tight):
        builder.append(*row)

    assert exact.has_room_for(*row)
    assert not tight.has_room_for(*row)


@pytest.mark.parametrize("size_max", [-(2**63), -1, 0])
def test_no_second_record_fits_into_less_than_nothing(size_max: int) -> None:
    builder = implementation.writer.BatchBuilder()

    assert builder.append(NOW, None, b"v", (), size_max)
    assert not builder.append(NOW, None, b"v", (), size_max)


@pytest.mark.parametrize("delta", [-1, 0, 4])
def test_offsets_only_grow(delta: int) -> None:
    builder = implementation.writer.BatchBuilder()
    builder.append_at(4, NOW, None, b"v")

    with pytest.raises(ValueError, match="does not come after 4"):
        builder.append_at(delta, NOW, None, b"v")


def test_last_offset_stays_when_its_record_is_gone() -> None:
    builder = implementation.writer.BatchBuilder()
    builder.append_at(2, NOW, b"k", b"kept")
    header = read_header(b"".join(batch_chunks(builder, base_offset=40, last_offset_delta=9)))

    assert (40, 49, 1) == (header.base_offset, header.last_offset, header.count)


def test_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    builder = implementation.writer.BatchBuilder(base_timestamp=NOW + 500)
    builder.append(NOW, b"k", None)
    builder.append(NOW + 1, b"l", None)
    batch = b"".join(batch_chunks(builder, has_delete_horizon=True))

    assert NOW + 500 == read_header(batch).delete_horizon
    assert [NOW, NOW + 1] == [row[1] for row in decode_batch(batch)]
    assert NOW + 1 == read_header(batch).max_timestamp


def test_batch_without_delete_horizon_says_so() -> None:
    assert read_header(encode_batch([(NOW, None, None, ())])).delete_horizon is None
