"""Columns of records back to rows, for tests that compare the two."""

from __future__ import annotations

from trionet.protocol.records._types import Record
from trionet.protocol.records.columnar._numpy_columns import NumpyColumns


def rows_of(columns: NumpyColumns) -> list[Record]:
    """The records, each as a row."""

    def cut(start: int, length: int) -> bytes | None:
        return None if length < 0 else bytes(columns.body[start : start + length])

    keys = map(cut, columns.key_starts.tolist(), columns.key_lengths.tolist())
    found = map(cut, columns.value_starts.tolist(), columns.value_lengths.tolist())
    rows = zip(columns.offsets.tolist(), columns.timestamps.tolist(), keys, found, strict=True)
    return [(*row, columns.headers.get(number, ())) for number, row in enumerate(rows)]
