"""Records as columns of Arrow: the same as rows."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import WireFormatError
from trionet.protocol.records._batch import BatchHeader
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import NewRecord
from trionet.protocol.records.compression._codecs import ZSTD

pytest.importorskip("pyarrow", reason="pyarrow is of the extra `spark`")
pytest.importorskip("numpy", reason="numpy is of the extra `spark`")

from trionet.protocol.records.columnar._arrow_columns import SCHEMA, decode_arrow

pytestmark = pytest.mark.usefixtures("each_implementation")

NOW = 1_700_000_000_000

values = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=90), values), max_size=2)
new_records = st.lists(st.tuples(st.integers(0, 2**41), values, values, headers), min_size=1)


def rows_of(batch: bytes) -> list[tuple[object, ...]]:
    table = decode_arrow(batch)
    table.validate(full=True)
    columns = [table.column(number) for number in range(5)]
    times = columns[1].cast("int64").to_pylist()
    found = [
        [(pair["key"], pair["value"]) for pair in each or ()] for each in columns[4].to_pylist()
    ]
    return [
        *zip(
            columns[0].to_pylist(),
            times,
            columns[2].to_pylist(),
            columns[3].to_pylist(),
            found,
            strict=True,
        )
    ]


def expected_of(batch: bytes) -> list[tuple[object, ...]]:
    return [(*row[:4], [*row[4]]) for row in decode_batch(batch)]


@given(new_records, st.sampled_from([0, ZSTD]))
def test_columns_have_what_rows_have(rows: list[NewRecord], codec: int) -> None:
    batch = encode_batch(rows, codec=codec, base_offset=7)

    assert expected_of(batch) == rows_of(batch)
    assert SCHEMA == decode_arrow(batch).schema


@pytest.mark.parametrize("nulls", [0, 1], ids=["all there", "some null"])
def test_large_values_are_whole(nulls: int) -> None:
    """They are copied in another way than small ones, and than those of which some are null."""
    sizes = [0, 1, 300, 9000, 255, 256, 70_000]
    rows: list[NewRecord] = [(NOW, b"key", bytes([size % 251]) * size, ()) for size in sizes]
    batch = encode_batch([*rows, (NOW, b"", None, ())] if nulls else rows)

    assert expected_of(batch) == rows_of(batch)


def test_records_without_headers_have_null_there() -> None:
    rows = [(NOW, None, b"a", [("h", b"1")]), (NOW, None, b"b", ())]

    column = decode_arrow(encode_batch(cast(list[NewRecord], rows))).column("headers")

    assert [[{"key": "h", "value": b"1"}], None] == column.to_pylist()


def test_batch_without_records_has_empty_columns() -> None:
    header = BatchHeader(0, 49, -1, 2, 0, 0, 3, NOW, NOW, -1, -1, -1, 0)

    assert 0 == decode_arrow(header.pack()).num_rows


def test_batch_cut_anywhere_is_refused() -> None:
    batch = encode_batch([(NOW, b"k", b"value", [("h", b"w")])] * 3)
    for end in range(len(batch)):
        with pytest.raises(WireFormatError):
            decode_arrow(batch[:end])
