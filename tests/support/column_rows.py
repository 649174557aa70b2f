"""Columns of records back to rows, for tests that compare the two."""

from __future__ import annotations

from itertools import accumulate, pairwise

from trionet.protocol.records._types import Record
from trionet.protocol.records.columnar._numpy_columns import NumpyColumns


def rows_of(columns: NumpyColumns) -> list[Record]:
    """The records, each as a row."""

    def cut(start: int, length: int) -> bytes | None:
        return None if length < 0 else bytes(columns.body[start : start + length])

    keys = map(cut, columns.key_starts.tolist(), columns.key_lengths.tolist())
    found = map(cut, columns.value_starts.tolist(), columns.value_lengths.tolist())
    rows = zip(columns.offsets.tolist(), columns.timestamps.tolist(), keys, found, strict=True)
    if columns.headers is None:
        return [(*row, ()) for row in rows]
    counts, *places = (each.tolist() for each in columns.headers)
    pairs = zip(map(cut, *places[:2]), map(cut, *places[2:]), strict=True)
    headers = [((key or b"").decode("utf-8", "replace"), value) for key, value in pairs]
    ends = [*accumulate(counts, initial=0)]
    return [(*row, headers[a:b] or ()) for row, (a, b) in zip(rows, pairwise(ends), strict=True)]
