"""Headers as NumPy arrays: the same as the record loop finds, however many a record has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import WireFormatError
from trionet.protocol.records._batch import BatchHeader
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import Headers, NewRecord

pytest.importorskip("numpy", reason="numpy is of the extra `spark`")

import numpy as np

from support.column_rows import rows_of
from trionet.protocol.records.columnar._numpy_columns import decode_numpy

values = st.none() | st.binary(max_size=150)
headers = st.lists(st.tuples(st.text(max_size=70), values), max_size=30)


def with_headers(*each: Headers) -> bytes:
    rows: list[NewRecord] = [(0, b"k", b"v", pairs) for pairs in each]
    return encode_batch(rows)


@given(st.lists(headers, min_size=1, max_size=60))
def test_headers_are_those_of_the_record_loop(each: list[Headers]) -> None:
    batch = with_headers(*each)

    assert decode_batch(batch) == rows_of(decode_numpy(batch))


def test_one_record_may_have_many_more_headers_than_the_others() -> None:
    """Most are found a step at a time for all records, the rest of one record in a loop."""
    few: Headers = [("a", b"1"), ("b", None)]
    batch = with_headers(*[few] * 100, [("h", b"w" * number) for number in range(300)], *[few] * 9)

    assert decode_batch(batch) == rows_of(decode_numpy(batch))


def test_headers_of_some_of_the_records() -> None:
    columns = decode_numpy(with_headers([("a", b"1")], (), [("b", None), ("c", b"")], [("d", b"")]))
    assert columns.headers is not None

    found = columns.headers.of_records(np.array([1, 2]))

    assert [0, 2] == found.counts.tolist()
    names = [bytes(columns.body[start : start + 1]) for start in found.key_starts.tolist()]
    assert [b"b", b"c"] == names
    assert [-1, 0] == found.value_lengths.tolist()


def tampered(count: int, headers: bytes, records: int) -> bytes:
    """A batch of records that say they have so many headers."""
    zigzag = bytearray()
    number = count << 1 if count >= 0 else (-count << 1) - 1
    while number > 127:
        zigzag.append(number & 127 | 128)
        number >>= 7
    zigzag.append(number)
    record = b"\0\0\0\1\1" + zigzag + headers
    body = (bytes([len(record) << 1]) + record) * records
    return BatchHeader(0, 49 + len(body), -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, records).pack() + body


@pytest.mark.parametrize("records", [1, 50], ids=["in a loop", "in steps"])
@pytest.mark.parametrize(
    ("count", "headers"),
    [
        (-1, b""),
        (2**40, b""),
        (8, b"\0\1"),
        (1, b"\1\1"),
        (1, b"\3\1"),
        (1, b"\0\3"),
        (1, b"\x7e\1"),
        (1, b"\0\x7e"),
        (1, b"\xff\xff\xff\xff\xff\xff\1\1"),
    ],
    ids=[
        "negative count",
        "count beyond the batch",
        "more than there are",
        "null key",
        "negative key length",
        "negative value length",
        "key beyond the record",
        "value beyond the record",
        "key length of 48 bits",
    ],
)
def test_malformed_headers_are_refused(count: int, headers: bytes, records: int) -> None:
    batch = tampered(count, headers, records)
    with pytest.raises(WireFormatError):
        decode_batch(batch)

    with pytest.raises(WireFormatError):
        decode_numpy(batch)
