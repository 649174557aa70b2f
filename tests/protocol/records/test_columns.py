"""Records as columns: the same as rows, field by field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import LocalProtocolError
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._records import (
    batch_chunks,
    decode_batch,
    decode_columns,
    decode_values,
    encode_batch,
    encode_columns,
)
from trionet.protocol.records._types import NewRecord
from trionet.protocol.records.compression._codecs import GZIP

pytestmark = pytest.mark.usefixtures("each_implementation")

NOW = 1_700_000_000_000

texts = st.text(max_size=100)
values = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(texts, values), max_size=3)
new_records = st.lists(st.tuples(st.integers(0, 2**62), values, values, headers), min_size=1)


@given(new_records, st.integers(0, 2**40))
def test_columns_have_what_rows_have(rows: list[NewRecord], base_offset: int) -> None:
    batch = encode_batch(rows, base_offset=base_offset)
    columns = decode_columns(batch)

    assert decode_batch(batch) == [*zip(*columns, strict=True)]
    assert columns.values == decode_values(batch)
    assert columns.offsets == range(base_offset, base_offset + len(rows))


@given(new_records)
def test_columns_make_the_batch_that_rows_make(rows: list[NewRecord]) -> None:
    timestamps, keys, row_values, row_headers = zip(*rows, strict=True)

    assert encode_batch(rows) == encode_columns(timestamps, row_values, keys, row_headers)


def test_one_timestamp_is_every_records() -> None:
    batch = encode_columns(NOW, [b"a", None], codec=GZIP, base_offset=3)

    assert [(3, NOW, None, b"a", ()), (4, NOW, None, None, ())] == decode_batch(batch)


@pytest.mark.parametrize(
    "columns",
    [([NOW], [b"a", b"b"]), (NOW, [b"a"], [None, None]), (NOW, [b"a"], [None], [(), ()])],
)
def test_columns_of_different_lengths_are_refused(columns: tuple[int, list[bytes]]) -> None:
    with pytest.raises(ValueError, match="columns differ in length"):
        encode_columns(*columns)


def test_no_columns_make_no_batch() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_columns(NOW, [])


def test_offsets_with_gaps_are_a_list() -> None:
    builder = implementation.writer.BatchBuilder()
    for delta in (0, 1, 7, 8, 9000, 2**31 - 1):
        builder.append_at(delta, NOW, None, b"%d" % delta)
    batch = b"".join(batch_chunks(builder, base_offset=10))
    columns = decode_columns(batch)

    assert [10, 11, 17, 18, 9010, 2**31 + 9] == columns.offsets
    assert [row[0] for row in decode_batch(batch)] == columns.offsets


def test_offsets_that_only_begin_later_are_a_list() -> None:
    builder = implementation.writer.BatchBuilder()
    builder.append_at(5, NOW, None, b"the others are gone")

    assert [5] == decode_columns(b"".join(batch_chunks(builder))).offsets


def test_log_append_time_is_every_records_time() -> None:
    batch = encode_columns([NOW, NOW + 5], [b"a", b"b"], timestamp_type=1)

    assert [NOW + 5, NOW + 5] == decode_columns(batch).timestamps


def test_records_of_one_millisecond_may_be_followed_by_older_ones() -> None:
    timestamps = [NOW, NOW, NOW + 70_000, NOW + 70_000, NOW - 70_000, NOW]
    batch = encode_columns(timestamps, [b"v"] * 6)

    assert timestamps == decode_columns(batch).timestamps
    assert timestamps == [row[1] for row in decode_batch(batch)]


def test_timestamps_too_far_apart_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match="does not fit into a varlong"):
        encode_columns([-(2**63), 2**63 - 1], [None, None])
