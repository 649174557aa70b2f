"""Records in and out of batches, as rows and as columns, also against two other implementations."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import HEADER_SIZE, BatchHeader, check_crc, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import (
    ABORT,
    COMMIT,
    CONTROL_TYPES,
    EndTransactionMarker,
    batch_chunks,
    control_type,
    decode_batch,
    decode_columns,
    decode_values,
    encode_batch,
    encode_columns,
    encode_marker,
    open_batch,
    read_marker,
    read_to_end,
)
from trionet.protocol.records._types import Headers, NewRecord
from trionet.protocol.records.compression._codecs import GZIP, NAMES

pytestmark = pytest.mark.usefixtures("each_implementation")

NOW = 1_700_000_000_000
SAMPLE: list[NewRecord] = [
    (NOW, b"key", b"value", ()),
    (NOW + 70, None, b"v" * 100, [("trace", b"1"), ("none", None), ("", b"")]),
    (NOW - 5, b"", None, ()),
    (NOW + 10**6, b"k" * 200, b"v" * 20_000, [("h" * 200, b"w" * 70)]),
]

texts = st.text(max_size=200)
values = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(texts, values), max_size=4)
timestamps = st.integers(0, 2**62)
#: What every implementation can hold.
foreign_records = st.lists(
    st.tuples(
        st.integers(0, 2**40),
        values,
        values,
        st.lists(st.tuples(st.text(max_size=70), st.binary(max_size=70)), max_size=2),
    ),
    min_size=1,
    max_size=20,
)
new_records = st.lists(st.tuples(timestamps, values, values, headers), min_size=1, max_size=80)


def with_offsets(rows: list[NewRecord], base: int = 0) -> list[tuple[object, ...]]:
    return [(base + delta, *row) for delta, row in enumerate(rows)]


def comparable(records: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Records with their headers as lists: reading gives any sequence."""
    return [(*record[:4], [*cast(Headers, record[4])]) for record in records]


def batch_around(body: bytes, count: int = 1) -> bytes:
    header = BatchHeader(0, 49 + len(body), -1, 2, 0, 0, count - 1, NOW, NOW, -1, -1, -1, count)
    return header.pack() + body


def framed(fields: str) -> bytes:
    """One record's bytes (hex, without its length) with the right length in front."""
    body = bytes.fromhex(fields)
    return bytes([len(body) * 2]) + body


@given(new_records, st.integers(0, 4), st.integers(0, 2**40))
def test_round_trip(rows: list[NewRecord], codec: int, base_offset: int) -> None:
    batch = encode_batch(rows, base_offset=base_offset, codec=codec)
    header = read_header(batch)

    assert comparable(decode_batch(batch)) == comparable(with_offsets(rows, base_offset))
    assert check_crc(batch, 0, header)
    assert header.size == len(batch)
    assert (header.count, header.last_offset) == (len(rows), base_offset + len(rows) - 1)
    assert header.base_timestamp == rows[0][0]
    assert header.max_timestamp == max(row[0] for row in rows)


def test_ten_thousand_records_need_longer_offsets() -> None:
    rows: list[NewRecord] = [(NOW + number, None, b"%d" % number, ()) for number in range(10_000)]

    assert decode_batch(encode_batch(rows)) == with_offsets(rows)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_keys_and_values_are_bytes_whatever_holds_the_batch(kind: type) -> None:
    batch = encode_batch(SAMPLE)
    records = decode_batch(kind(b"before" + batch + b"behind"), 6)

    assert comparable(records) == comparable(with_offsets(SAMPLE))
    assert {type(field) for record in records for field in record[2:4]} == {bytes, type(None)}


def test_fields_of_the_producer_are_kept() -> None:
    batch = encode_batch(
        SAMPLE,
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
        leader_epoch=6,
        transactional=True,
        control=True,
    )
    header = read_header(batch)

    assert header[9:12] == (9, 2, 40)
    assert (header.leader_epoch, header.is_transactional, header.is_control) == (6, True, True)


def test_log_append_time_is_every_records_time() -> None:
    batch = encode_batch(SAMPLE, timestamp_type=1)

    assert read_header(batch).timestamp_type == 1
    assert [record[1] for record in decode_batch(batch)] == [NOW + 10**6] * len(SAMPLE)


def test_timestamps_are_read_alone() -> None:
    timestamps = [NOW, NOW - 5, -1, NOW + 2**40, 2**63 - 1]
    batch = encode_batch([(each, b"k", b"v", (("h", b"1"),)) for each in timestamps])
    header, body, start, end = open_batch(batch, 0)

    read = implementation.reader.read_timestamps
    assert timestamps == read_to_end(read, end, body, start, header.count, header.base_timestamp)


def test_offsets_may_have_gaps_after_compaction() -> None:
    batch = bytearray(encode_batch([(NOW, None, b"a", ()), (NOW, None, b"b", ())]))
    second = HEADER_SIZE + (batch[HEADER_SIZE] >> 1) + 1
    batch[second + 3] = 7 << 1

    assert [record[0] for record in decode_batch(batch)] == [0, 7]


def test_no_records_make_no_batch() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch([])


@pytest.mark.parametrize(
    "arguments",
    [{"base_offset": 2**63}, {"producer_epoch": 2**15}, {"base_sequence": -(2**31) - 1}],
)
def test_number_that_does_not_fit_is_our_mistake(arguments: dict[str, int]) -> None:
    with pytest.raises(LocalProtocolError, match="cannot be encoded"):
        encode_batch(SAMPLE, **arguments)  # type: ignore[arg-type]


def test_timestamp_that_does_not_fit_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="does not fit"):
        encode_batch([(0, None, None, ()), (2**64, None, None, ())])


@pytest.mark.parametrize("codec", NAMES, ids=NAMES.get)
def test_batch_cut_anywhere_is_refused(codec: int) -> None:
    batch = encode_batch(SAMPLE[:3], codec=codec)
    for end in range(len(batch)):
        with pytest.raises(WireFormatError):
            decode_batch(batch[:end])


@pytest.mark.parametrize("codec", NAMES, ids=NAMES.get)
def test_records_cut_anywhere_are_refused_though_the_header_agrees(codec: int) -> None:
    batch = encode_batch(SAMPLE[:3], codec=codec)
    header = read_header(batch)
    for size in range(len(batch) - HEADER_SIZE):
        shorter = header._replace(length=49 + size).pack() + batch[HEADER_SIZE:][:size]
        with pytest.raises(WireFormatError):
            decode_batch(shorter)


def test_mutated_batch_is_a_value_or_a_wire_format_error() -> None:
    rng = random.Random(11)
    refused = 0
    for codec in NAMES:
        batch = encode_batch(SAMPLE[:3], codec=codec)
        for _ in range(3000):
            mutated = bytearray(batch)
            for _ in range(rng.randrange(1, 4)):
                mutated[rng.randrange(len(mutated))] = rng.randrange(256)
            try:
                decode_batch(mutated, inflated_bytes_max=1 << 20)
            except WireFormatError:
                refused += 1

    assert refused > 0


def test_bomb_is_refused() -> None:
    batch = encode_batch([(NOW, None, bytes(50 << 20), ())], codec=4)

    with pytest.raises(WireFormatError, match="larger than 1048576 bytes"):
        decode_batch(batch, inflated_bytes_max=1 << 20)


def test_a_header_key_that_is_not_utf_8_is_replaced_where_it_is_not() -> None:
    """As Kafka's consumer does: a producer may write anything there."""
    [record] = decode_batch(batch_around(framed("00 00 00 01 01 02 04 61 ff 01")))

    assert [("a\ufffd", None)] == list(record[4])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(framed("00 00 00 03 01 00"), "negative length: -2", id="key"),
        pytest.param(framed("00 00 00 01 03 00"), "negative length: -2", id="value"),
        pytest.param(framed("00 00 00 01 01 01"), "headers cannot fit", id="headers"),
        pytest.param(framed("00 00 00 01 01 7e"), "headers cannot fit", id="many headers"),
        pytest.param(framed("00 00 00 01 01 02 01 01"), "header is null", id="header key"),
        pytest.param(framed("00 00 00 01 01 02 00 03"), "negative length: -2", id="header value"),
        pytest.param(
            b"\x0e" + bytes.fromhex("000000010100"), "does not match its fields", id="too long"
        ),
        pytest.param(
            b"\x0d" + bytes.fromhex("000000010100"), "does not match its fields", id="odd length"
        ),
        pytest.param(framed("00 00 00 01 01 00") + b"\0", "do not end", id="left over"),
        pytest.param(framed("00" + "ff" * 10 + "01 00 01 01 00"), "ten bytes", id="varint"),
        pytest.param(framed("00" + "ff" * 9 + "7f 00 01 01 00"), "64 bits", id="varlong"),
    ],
)
def test_malformed_record_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(WireFormatError, match=message):
        decode_batch(batch_around(body))


def test_count_that_is_not_the_number_of_records_is_refused() -> None:
    record = framed("00 00 00 01 01 00")
    for count in (-1, 0, 2, 2**31 - 1):
        with pytest.raises(WireFormatError):
            decode_batch(batch_around(record, count))
    assert decode_batch(batch_around(record)) == [(0, NOW, None, None, ())]
    assert decode_batch(batch_around(b"", 0)) == []


def test_other_formats_are_refused() -> None:
    batch = bytearray(encode_batch(SAMPLE))
    batch[16] = 1

    with pytest.raises(WireFormatError, match="magic 1"):
        decode_batch(batch)


def foreign_rows(rng: random.Random, count: int) -> list[NewRecord]:
    """Random rows that every implementation can hold."""
    return [
        (
            NOW + rng.randrange(-500, 5000),
            rng.choice((None, b"", rng.randbytes(8))),
            rng.choice((None, rng.randbytes(rng.choice((0, 50, 63, 64, 100, 9000))))),
            [(f"h{n}", rng.randbytes(5)) for n in range(rng.choice((0, 0, 1, 3)))],
        )
        for _ in range(count)
    ]


KAFKA_PYTHON = "kafka.record.default_records"
AIOKAFKA = "aiokafka.record.default_records"


@pytest.mark.parametrize(
    ("module", "codec"),
    # What each reads without other packages.
    [*((KAFKA_PYTHON, codec) for codec in (0, 1)), *((AIOKAFKA, codec) for codec in NAMES)],
)
@pytest.mark.parametrize("count", [1, 3, 200])
def test_another_implementation_agrees(module: str, codec: int, count: int) -> None:
    record_module = pytest.importorskip(module)
    rows = foreign_rows(random.Random(count), count)
    theirs = record_module.DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for delta, (timestamp, key, value, row_headers) in enumerate(rows):
        theirs.append(delta, timestamp, key, value, list(row_headers))
    built = bytes(theirs.build())
    read = record_module.DefaultRecordBatch(memoryview(encode_batch(rows, codec=codec)))

    assert read.validate_crc()
    assert [
        (record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for record in read
    ] == with_offsets(rows)
    assert comparable(decode_batch(built)) == with_offsets(rows)
    if codec == 0 and module == AIOKAFKA:
        assert built[8:] == encode_batch(rows, leader_epoch=read_header(built).leader_epoch)[8:]


@given(foreign_records, st.sampled_from([0, 1]))
def test_other_clients_read_what_is_written(rows: list[NewRecord], codec: int) -> None:
    ours = encode_batch(rows, codec=codec)
    for name in (KAFKA_PYTHON, AIOKAFKA):
        read = pytest.importorskip(name).DefaultRecordBatch(memoryview(ours))
        found = [
            (each.offset, each.timestamp, each.key, each.value, list(each.headers)) for each in read
        ]

        assert comparable(with_offsets(rows)) == found


@pytest.mark.parametrize(
    ("base_offset", "base_timestamp", "fields"),
    [
        pytest.param(2**63 - 1, NOW, "00 00 02 01 01 00", id="offset"),
        pytest.param(0, 2**63 - 1, "00 02 00 01 01 00", id="timestamp"),
        pytest.param(0, -(2**63), "00 01 00 01 01 00", id="timestamp before all"),
        pytest.param(0, NOW, f"00 fe{'ff' * 8}01 00 01 01 00", id="largest delta"),
    ],
)
def test_sum_beyond_64_bits_is_refused(base_offset: int, base_timestamp: int, fields: str) -> None:
    body = framed(fields)
    header = read_header(batch_around(body))
    header = header._replace(base_offset=base_offset, base_timestamp=base_timestamp)
    for decode in (decode_batch, decode_columns):
        with pytest.raises(WireFormatError, match="fit into 64 bits"):
            decode(header.pack() + body)


def test_smallest_timestamp_delta_is_read() -> None:
    batch = batch_around(framed(f"00 {'ff' * 9}01 00 01 01 00"))

    assert [(0, NOW - 2**63, None, None, ())] == decode_batch(batch)


@pytest.mark.parametrize("edge", [-(2**63), 2**63 - 1])
def test_timestamps_at_the_ends_of_64_bits_are_kept(edge: int) -> None:
    batch = encode_batch([(edge, None, b"v", ())], base_offset=2**63 - 1)

    assert [(2**63 - 1, edge, None, b"v", ())] == decode_batch(batch)


@pytest.mark.parametrize("field", ["text", 5, ["list"]])
def test_what_is_no_bytes_is_a_type_error(field: object) -> None:
    for row in ((NOW, field, None, ()), (NOW, None, field, ()), (NOW, None, None, [("h", field)])):
        with pytest.raises(TypeError):
            encode_batch([row])  # type: ignore[list-item]


def test_other_buffers_are_as_good_as_bytes() -> None:
    row: Any = (NOW, bytearray(b"k"), memoryview(b"value"), ())
    batch = encode_batch([row])

    assert [(0, NOW, b"k", b"value", ())] == decode_batch(batch)


def test_count_is_compared_with_the_size_before_anything_is_allocated() -> None:
    batch = batch_around(framed("00 00 00 01 01 00"), 2**31 - 1)
    for decode in (decode_batch, decode_columns, decode_values):
        with pytest.raises(WireFormatError, match="2147483647 records cannot fit into a batch"):
            decode(batch)


def test_known_bytes() -> None:
    """One record, its bytes written down by hand from the format's description."""
    record = "18 00 00 00 02 6b 04 7676 02 02 68 01"
    body = bytes.fromhex(record.replace(" ", ""))
    tail = struct.pack(">hiqqqhii", 0, 0, NOW, NOW, -1, -1, -1, 1) + body
    expected = struct.pack(">qiibI", 0, 49 + len(body), -1, 2, crc32c(tail)) + tail

    assert encode_batch([(NOW, b"k", b"vv", [("h", None)])]) == expected


@pytest.mark.parametrize("is_commit", [False, True])
def test_marker_is_read_as_it_was_written(is_commit: bool) -> None:
    marker = EndTransactionMarker(is_commit, 7)
    batch = encode_marker(
        marker, timestamp=NOW, producer_id=9, producer_epoch=2, base_offset=40, leader_epoch=3
    )
    header = read_header(batch)
    [(offset, timestamp, key, value, headers)] = decode_batch(batch)

    assert check_crc(batch, 0, header)
    assert (True, True) == (header.is_control, header.is_transactional)
    assert (40, NOW, (), 3) == (offset, timestamp, headers, header.leader_epoch)
    assert (9, 2, -1) == header[9:12]
    assert (COMMIT if is_commit else ABORT) == control_type(key)
    assert marker == read_marker(key, value)


def test_known_bytes_of_a_marker() -> None:
    """Of a commit, written down by hand from the format's description."""
    assert EndTransactionMarker(True, 258) == read_marker(
        bytes.fromhex("0000 0001"), bytes.fromhex("0000 00000102")
    )


def test_other_types_are_no_markers() -> None:
    assert read_marker(bytes.fromhex("0000 0002"), b"of the quorum") is None
    assert "LEADER_CHANGE" == CONTROL_TYPES[control_type(bytes.fromhex("0000 0002"))]
    assert 99 == control_type(bytes.fromhex("0000 0063"))


def test_later_versions_may_say_more() -> None:
    later = read_marker(bytes.fromhex("0001 0000 ff"), bytes.fromhex("0001 00000005 ff"))

    assert EndTransactionMarker(False, 5) == later


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0" * 6),
        (b"\0\0\0", b"\0" * 6),
        (b"\xff\xff\0\0", b"\0" * 6),
        (b"\0\0\0\0", None),
        (b"\0\0\0\0", b"\0" * 5),
        (b"\0\0\0\0", b"\xff\xff\0\0\0\0"),
    ],
)
def test_malformed_marker_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(WireFormatError):
        read_marker(key, value)


def test_epoch_that_does_not_fit_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="epoch"):
        encode_marker(
            EndTransactionMarker(True, 2**31), timestamp=NOW, producer_id=1, producer_epoch=0
        )


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


@pytest.mark.parametrize("count", [1, 2, 5])
def test_offsets_may_end_with_the_last_of_64_bits(count: int) -> None:
    offsets = range(2**63 - count, 2**63)
    batch = encode_columns(NOW, [b"v"] * count, base_offset=offsets[0])

    assert offsets == decode_columns(batch).offsets
    assert [*offsets] == [row[0] for row in decode_batch(batch)]


def test_offsets_that_only_begin_later_are_a_list() -> None:
    builder = implementation.writer.BatchBuilder()
    builder.append_at(5, NOW, None, b"the others are gone")

    assert [5] == decode_columns(b"".join(batch_chunks(builder))).offsets


def test_log_append_time_is_every_timestamp() -> None:
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
