"""Fetched records as Arrow columns: the same as one by one, whatever the batches are like."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.errors import CorruptRecordError, FetchTooLargeError
from trionet.protocol.messages.fetch import AbortedTransaction
from trionet.protocol.records._records import (
    EndTransactionMarker,
    decode_batch,
    encode_batch,
    encode_marker,
)
from trionet.protocol.records._types import NewRecord
from trionet.protocol.records.compression._codecs import GZIP, NONE, ZSTD
from trionet.protocol.records.message_sets._message_set import encode_message_set
from trionet.spark.source._arrow_decoder import (
    BATCH_ROWS_MAX,
    DECODED_BYTES,
    ColumnDecoder,
    FetchedRecords,
    bounds,
    schema,
)

NAME = TopicPartition("orders", 7)
ALL = 2**63 - 1

FIELDS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
RECORDS = st.lists(st.tuples(st.integers(-(2**40), 2**40), FIELDS, FIELDS, HEADERS), min_size=1)


def decoded(
    records: bytes,
    start: int = 0,
    until: int = ALL,
    *,
    aborted: tuple[AbortedTransaction, ...] = (),
    **options: Any,
) -> list[dict[str, Any]]:
    decoder = ColumnDecoder(NAME, **options)
    found = list(
        decoder.decode(FetchedRecords(memoryview(bytearray(records)), start, until, aborted))
    )
    wanted = schema(options.get("include_headers", False))
    for each in found:
        assert wanted.equals(each.schema)
        each.validate(full=True)
    return list(pa.Table.from_batches(found, wanted).cast(_plain(wanted)).to_pylist())


def _plain(columns: Any) -> Any:
    """Times as numbers: Python has none so far away."""
    at = columns.get_field_index("timestamp")
    return columns.set(at, columns.field("timestamp").with_type(pa.int64()))


def offsets(rows: list[dict[str, Any]]) -> list[int]:
    return [each["offset"] for each in rows]


def sent(first: int, count: int, **fields: Any) -> bytes:
    rows: list[NewRecord] = [(1000 + each, None, b"%d" % each, ()) for each in range(count)]
    return encode_batch(rows, base_offset=first, **fields)


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_a_batch_that_is_huge_when_it_is_decompressed_is_read(codec: int) -> None:
    """As by the connector, which has no limit: in parts, from any offset on."""
    large = bytes(DECODED_BYTES + 1)
    rows: list[NewRecord] = [(1000, None, b"first", ())]
    rows += [(1000, b"%d" % each, large, ()) for each in range(5)]
    data = sent(0, 2) + encode_batch(rows, base_offset=2, codec=codec) + sent(8, 1)

    found = decoded(data, 3)

    assert [3, 4, 5, 6, 7, 8] == offsets(found)
    assert [large] * 5 == [each["value"] for each in found[:5]]


def test_a_batch_that_is_larger_than_allowed_is_not_corrupt() -> None:
    data = encode_batch([(1000, None, bytes(5000), ())], codec=ZSTD)

    with pytest.raises(FetchTooLargeError, match=r"4000 bytes when decompressed; set .* no limit"):
        decoded(data, decompressed_bytes_max=4000)
    assert [0] == offsets(decoded(data, decompressed_bytes_max=6000))


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(st.tuples(RECORDS, st.sampled_from([NONE, GZIP, ZSTD]), st.booleans()), min_size=1),
    st.booleans(),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_columns_hold_what_a_loop_over_the_records_reads(
    batches: list[tuple[list[NewRecord], int, bool]], include_headers: bool, start: int, size: int
) -> None:
    data, at, expected = b"", 0, []
    for records, codec, is_logs in batches:
        batch = encode_batch(records, base_offset=at, codec=codec, timestamp_type=int(is_logs))
        at += len(records) + 2  # compaction leaves gaps
        data += batch
        for offset, timestamp, key, value, headers in decode_batch(batch):
            row: dict[str, Any] = {
                "key": key,
                "value": value,
                "topic": "orders",
                "partition": 7,
                "offset": offset,
                "timestamp": timestamp * 1000,
                "timestampType": int(is_logs),
            }
            if include_headers:
                pairs = [{"key": each, "value": text} for each, text in headers]
                row["headers"] = pairs or None
            if start <= offset < start + size:
                expected.append(row)

    assert expected == decoded(data, start, start + size, include_headers=include_headers)
    assert (0, at - 2) == bounds(data)


def test_batches_have_a_number_of_rows_that_spark_can_hold() -> None:
    data = sent(0, 2 * BATCH_ROWS_MAX + 1)
    found = list(ColumnDecoder(NAME).decode(FetchedRecords(data, 0, ALL)))

    assert [BATCH_ROWS_MAX, BATCH_ROWS_MAX, 1] == [each.num_rows for each in found]


def test_large_records_come_in_small_batches() -> None:
    rows: list[NewRecord] = [(0, None, bytes(3_000_000), ()) for _ in range(3)]
    found = list(ColumnDecoder(NAME).decode(FetchedRecords(encode_batch(rows), 0, ALL)))

    assert [1, 1, 1] == [each.num_rows for each in found]


def _transactions() -> tuple[bytes, AbortedTransaction]:
    """Records 0 and 1 aborted, 2 open to all, 3 and 4 committed, with markers between."""
    of_one = {"producer_id": 1, "producer_epoch": 0, "transactional": True}
    data = sent(0, 2, **of_one) + sent(2, 1) + _marker(3, is_commit=False)
    data += sent(4, 2, **of_one) + _marker(6, is_commit=True)
    return data, AbortedTransaction(producer_id=1, first_offset=0)


def _marker(offset: int, *, is_commit: bool) -> bytes:
    end = EndTransactionMarker(is_commit, 0)
    return encode_marker(end, timestamp=0, producer_id=1, producer_epoch=0, base_offset=offset)


def test_what_was_aborted_is_left_out_where_only_what_is_committed_is_read() -> None:
    data, aborted = _transactions()

    assert [2, 4, 5] == offsets(decoded(data, aborted=(aborted,), is_read_committed=True))
    assert [0, 1, 2, 4, 5] == offsets(decoded(data))


def test_messages_of_old_brokers_are_read_before_batches_and_between() -> None:
    zero = encode_message_set([(0, -1, b"k", b"a", ()), (1, -1, None, b"b", ())], magic=0)
    one = encode_message_set([(2, 5, None, None, ()), (3, 6, None, b"d", ())], magic=1, codec=GZIP)
    rows = decoded(zero + one + sent(4, 2) + zero, until=5, include_headers=True)

    assert [0, 1, 2, 3, 4, 0, 1] == offsets(rows)
    assert [-1, -1, 0, 0, 0] == [each["timestampType"] for each in rows[:5]]
    assert [-1000, -1000, 5000, 6000, 1_000_000] == [each["timestamp"] for each in rows[:5]]
    assert [b"a", b"b", None, b"d", b"0"] == [each["value"] for each in rows[:5]]
    assert {None} == {each["headers"] for each in rows}


def test_a_batch_that_is_cut_short_is_left_to_the_next_fetch() -> None:
    data = sent(0, 2) + sent(2, 2)[:-1]

    assert [0, 1] == offsets(decoded(data))
    assert (0, 2) == bounds(data)


def test_a_wrong_checksum_is_an_error_unless_it_is_not_checked() -> None:
    data = bytearray(sent(5, 2))
    data[-2] ^= 1

    with pytest.raises(CorruptRecordError, match=r"orders-7 from offset 5: checksum"):
        decoded(bytes(data), start=5)
    assert [5, 6] == offsets(decoded(bytes(data), checks_crcs=False))


def test_what_is_broken_after_the_range_is_no_error() -> None:
    data = bytearray(sent(0, 2) + sent(2, 2))
    data[-2] ^= 1

    assert [0, 1] == offsets(decoded(bytes(data), until=2))


def test_times_that_spark_cannot_hold_are_the_nearest_that_it_can() -> None:
    """Producers choose them, and one record must not end the queries of all who read a topic."""
    times = (2**62, -(2**62), 5)

    data = encode_batch([(time, None, b"", ()) for time in times])

    most = (2**63 - 1) // 1000 * 1000
    assert [most, -most, 5000] == [row["timestamp"] for row in decoded(data)]


def test_what_is_not_utf_8_in_the_key_of_a_header_is_replaced() -> None:
    data = encode_batch([(0, None, b"", [("zz", b"1"), ("é", None)]), (0, None, b"", ())])
    data = data.replace(b"zz", b"z\xff")

    [first, second] = decoded(data, include_headers=True, checks_crcs=False)

    assert [("z\ufffd", b"1"), ("é", None)] == [tuple(each.values()) for each in first["headers"]]
    assert second["headers"] is None
