"""Batches that are huge when they are decompressed: the same records, with little in memory."""

from __future__ import annotations

import random

import cramjam
import numpy as np
import pytest

from support.column_rows import rows_of
from trionet.errors import DecompressionLimitError, WireFormatError
from trionet.protocol._wire import varint
from trionet.protocol.records._batch import HEADER_SIZE, batch_positions
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import NewRecord, Record
from trionet.protocol.records.columnar._batch_parts import batch_parts
from trionet.protocol.records.columnar._numpy_batches import (
    BatchHeaders,
    OpenedBatches,
    read_headers,
)
from trionet.protocol.records.columnar._numpy_columns import decode_batches
from trionet.protocol.records.columnar._open_batches import WHOLE_GROUPS, open_batches
from trionet.protocol.records.compression._codecs import GZIP, LZ4, NAMES, SNAPPY, ZSTD, compress

PART = 4096
NO_LIMIT = 2**63 - 1
each_codec = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=NAMES.get)


def rows(*sizes: int) -> list[NewRecord]:
    rng = random.Random(3)
    return [(1000 + n, b"%d" % n, rng.randbytes(size), ()) for n, size in enumerate(sizes)]


def header_of(batch: bytes) -> BatchHeaders:
    return read_headers(batch, np.zeros(1, np.int64))


def parts(codec: int, batch: bytes, bytes_max: int = NO_LIMIT) -> list[OpenedBatches]:
    data = memoryview(batch)[HEADER_SIZE:]
    header = header_of(batch)
    return list(batch_parts(codec, data, header, part_bytes=PART, bytes_max=bytes_max))


def records(opened: list[OpenedBatches]) -> list[Record]:
    return [row for each in opened for row in rows_of(decode_batches(*each))]


@each_codec
def test_the_parts_of_a_batch_have_its_records(codec: int) -> None:
    sizes = [*range(60), 3 * PART, 0, 1, 2, PART, PART - 20, *[5] * 2000, 9 * PART, 7]
    batch = encode_batch(rows(*sizes), base_offset=70, codec=codec)
    found = parts(codec, batch)

    assert decode_batch(batch) == records(found)
    assert len(found) > 8
    # What is in memory is little more than a part, or one record; snappy has blocks of 32 KB.
    largest = {len(each.body) for each in found if each.headers["count"][0] > 1}
    assert max(largest) <= 2 * PART + (32 * 1024 if codec == SNAPPY else 0)
    assert max(len(each.body) for each in found) < 10 * PART + 32 * 1024


@each_codec
def test_batches_of_all_sizes_stay_in_order(codec: int) -> None:
    sizes = [[10], [10] * 50, [PART] * 40, [20], [WHOLE_GROUPS * PART + 1], [5], [2 * PART] * 20]
    batches = [
        encode_batch(rows(*each), base_offset=100 * n, codec=codec) for n, each in enumerate(sizes)
    ]
    data = b"".join(batches)
    places = np.array(batch_positions(data)[0])
    headers = read_headers(data, places)

    opened = list(open_batches(data, places, headers, PART, inflated_bytes_max=NO_LIMIT))

    assert [row for each in batches for row in decode_batch(each)] == records(opened)
    assert max(len(each.body) for each in opened) < (WHOLE_GROUPS + 2) * PART + 32 * 1024


@each_codec
def test_a_limit_counts_over_all_parts(codec: int) -> None:
    batch = encode_batch(rows(*[100] * 1000), codec=codec)
    size = len(encode_batch(rows(*[100] * 1000))) - HEADER_SIZE

    assert decode_batch(batch) == records(parts(codec, batch, size))
    with pytest.raises(DecompressionLimitError, match=f"larger than {size - 1} bytes"):
        parts(codec, batch, size - 1)
    places = np.zeros(1, np.int64)
    with pytest.raises(DecompressionLimitError, match="larger than 5000 bytes"):
        list(open_batches(batch, places, header_of(batch), PART, inflated_bytes_max=5000))


@each_codec
def test_a_batch_with_other_records_than_it_says_is_refused(codec: int) -> None:
    batch = encode_batch(rows(*[100] * 200), codec=codec)
    for count, why in ((199, "do not end where"), (201, "truncated record")):
        header = header_of(batch)
        header["count"] = count
        data = memoryview(batch)[HEADER_SIZE:]
        with pytest.raises(WireFormatError, match=why):
            list(batch_parts(codec, data, header, part_bytes=PART, bytes_max=NO_LIMIT))


@each_codec
def test_data_that_is_cut_is_refused(codec: int) -> None:
    batch = encode_batch(rows(*[100] * 1000), codec=codec)

    for end in (HEADER_SIZE + 3, len(batch) // 2, len(batch) - 5):
        with pytest.raises(WireFormatError):
            parts(codec, batch[:end])


@pytest.mark.parametrize(
    ("length", "why"),
    [(-1, "impossible length: -1"), (2**31, "impossible length"), (2**31 - 1, "truncated")],
)
def test_a_record_with_an_impossible_length_is_refused(length: int, why: str) -> None:
    """No more is held for it than there is."""
    batch = encode_batch(rows(5))
    zigzag = length << 1 if length >= 0 else ~length << 1 | 1
    body = compress(ZSTD, varint(zigzag) + bytes(100))

    with pytest.raises(WireFormatError, match=why):
        list(batch_parts(ZSTD, body, header_of(batch), part_bytes=PART, bytes_max=NO_LIMIT))


def test_snappy_of_librdkafka_is_read_and_may_not_lie() -> None:
    batch = encode_batch(rows(*[100] * 200))
    raw = bytes(cramjam.snappy.compress_raw(batch[HEADER_SIZE:]))
    lie = b"\xff\xff\xff\xff\x0f" + b"\x00a"

    def opened(data: bytes) -> list[OpenedBatches]:
        header = header_of(batch)
        return list(batch_parts(SNAPPY, data, header, part_bytes=PART, bytes_max=NO_LIMIT))

    assert decode_batch(batch) == records(opened(raw))
    with pytest.raises(WireFormatError, match="larger than it can be"):
        opened(lie)
