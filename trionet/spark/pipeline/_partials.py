"""Partial aggregates: rows of sums, maxima and histograms that can be merged.

Log records are folded into rows, and the results of a minute are computed from the rows. A row has
a kind, a key, sums, maxima and, for requests, histograms. Rows of the same kind and key can be
merged in any order and grouping, so it makes no difference which task or micro-batch read a record.
Rows are grouped by the values of their key with NumPy, all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...protocol.records.columnar._arrow_columns import number_column
from .histogram import BUCKETS_MAX

Numbers = NDArray[np.int64]

_CODES_MAX: Final = 1 << 62
_SMALL: Final = 1 << 16


@attrs.frozen
class Groups:
    """A grouping of rows.

    Attributes:
        of_row: the group number of each row.
        first: the index of the first row of each group.
        order: the row indices, group by group.
        begins: the position in ``order`` at which each group begins.
    """

    of_row: Numbers
    first: Numbers
    order: Numbers
    begins: Numbers

    @classmethod
    def by(cls, columns: Sequence[Any]) -> Groups:
        """Group rows by equal values in all columns.

        Args:
            columns: NumPy arrays of integers or Arrow arrays of any type, of equal length.
        """
        codes = _codes(columns)
        order = np.argsort(codes, kind="stable")
        in_order = codes[order]
        begins_here = np.ones(len(codes), bool)
        np.not_equal(in_order[1:], in_order[:-1], out=begins_here[1:])
        begins = np.flatnonzero(begins_here)
        of_row = np.empty(len(codes), np.int64)
        of_row[order] = np.cumsum(begins_here) - 1
        return cls(of_row, order[begins], order, begins)

    def __len__(self) -> int:
        return len(self.first)

    def sums(self, numbers: Numbers) -> Numbers:
        """Return the sum of each column of a matrix, per group."""
        return _reduced(np.add, numbers, self)

    def maxima(self, numbers: Numbers) -> Numbers:
        """Return the maximum of each column of a matrix, per group."""
        return _reduced(np.maximum, numbers, self)


def _reduced(of_two: np.ufunc, numbers: Numbers, groups: Groups) -> Numbers:
    if not len(groups):
        return numbers[:0]
    reduced: Numbers = of_two.reduceat(numbers[groups.order], groups.begins, axis=0)
    return reduced


def _codes(columns: Sequence[Any]) -> NDArray[Any]:
    """Return a code for each row; equal rows have equal codes."""
    combined: Numbers | None = None
    size = 1
    for column in columns:
        codes, count = _numbered(column)
        if combined is None:
            combined, size = codes, count
            continue
        if size * count >= _CODES_MAX:
            found, combined = np.unique(combined, return_inverse=True)
            size = len(found)
        combined = combined * count + codes
        size *= count
    assert combined is not None, "there must be at least one column"
    # 16-bit numbers are radix-sorted, ten times as fast.
    return combined.astype(np.uint16) if size <= _SMALL else combined


def _numbered(column: Any) -> tuple[Numbers, int]:
    """Return a non-negative code for each value, and a number greater than every code."""
    if not isinstance(column, np.ndarray):
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        return column.indices.to_numpy().astype(np.int64), len(column.dictionary) + 1
    if not len(column):
        return column.astype(np.int64), 1
    numbers = column.astype(np.int64)
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span < 1 << 31:
        return numbers - low, span
    found, codes = np.unique(numbers, return_inverse=True)
    return codes.astype(np.int64), len(found)


# Kinds of rows.
REQUESTS: Final = 0
ERRORS: Final = 1
TALKERS: Final = 2
CLOSES: Final = 3
#: The counts of the records of a broker in a partition and minute. The window is -1 for records
#: that are in no minute, and the broker is ``NO_BROKER`` for values that are no records.
INTAKE: Final = 4
NO_BROKER: Final = -1
#: Less than every offset, and every negative offset.
NO_OFFSET: Final = -(1 << 62)

#: The phases of a request, named as in :mod:`trionet.protocol.request_log`.
PHASES: Final = (
    "request_queue",
    "local",
    "remote",
    "throttle",
    "response_queue",
    "response_send",
    "total",
)
#: The times of a request with histograms. ``broker`` is the total without the time for which the
#: broker waits at the client's request; see :data:`._fold.LONG_POLLS`. It is the last, so that the
#: cells of earlier versions, which lack it, keep their meaning.
TIMES: Final = (*PHASES, "broker")

#: The sums of each kind. The first sum counts log records. The second sum, the number of requests
#: that the records represent with sampling, is computed when a minute is closed.
SUMS: Final[Mapping[int, Sequence[str]]] = {
    REQUESTS: (
        *("records", "requests", "request_bytes", "response_bytes", "errors", "throttled"),
        *(f"{time}_us" for time in TIMES),
        "failed",
    ),
    ERRORS: ("records", "requests"),
    TALKERS: ("records", "requests", "bytes", "time_us", "throttled", "throttle_us"),
    CLOSES: ("records", "connections", "requests", "bytes_received", "bytes_sent", "open_us"),
    INTAKE: ("requests_read", "connections_read", "malformed", "newer", "ahead", "old"),
}
#: The maxima of each kind.
MAXIMA: Final[Mapping[int, Sequence[str]]] = {
    REQUESTS: tuple(f"{time}_us" for time in TIMES),
    ERRORS: (),
    TALKERS: ("throttle_us",),
    CLOSES: ("open_us",),
    # The latest time, when it was read, by how much a record is too far ahead of that, the last
    # offset, and the first one, negative.
    INTAKE: ("time_us", "read_at_us", "ahead_us", "offset", "minus_offset"),
}

#: The columns of the key.
KEYS: Final = (
    ("kind", "int"),
    ("window", "bigint"),  # minutes since the epoch
    ("api_key", "int"),
    ("client_id", "string"),
    ("listener", "string"),
    ("principal", "string"),
    ("end", "int"),
    ("error_code", "int"),
    ("reason", "string"),
    ("partition", "int"),
    ("sample_ppm", "int"),
    ("node_id", "int"),
)
_LISTS: Final = (
    ("sums", "array<bigint>"),
    ("maxima", "array<bigint>"),
    ("cells", "array<int>"),  # BUCKETS_MAX * index in TIMES + bucket, ascending
    ("counts", "array<bigint>"),
)
_ARROW: Final = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "array<int>": pa.list_(pa.int32()),
    "array<bigint>": pa.list_(pa.int64()),
}
#: All columns, for Spark and for Arrow.
COLUMNS: Final = ", ".join(f"`{name}` {kind}" for name, kind in (*KEYS, *_LISTS))
SCHEMA: Final = pa.schema([(name, _ARROW[kind]) for name, kind in (*KEYS, *_LISTS)])

#: Greater than every cell number of a row.
CELL_NUMBERS: Final = BUCKETS_MAX * 8
assert len(TIMES) <= 8

NO_CELLS: Final = np.zeros(0, np.int64)


def rows(
    kind: int,
    keys: Mapping[str, Any],
    sums: Numbers,
    maxima: Numbers,
    cells: Numbers = NO_CELLS,
    counts: Numbers = NO_CELLS,
) -> Any:
    """Build rows of one kind, as a ``pyarrow.RecordBatch``.

    Args:
        kind: the kind of all rows.
        keys: NumPy or Arrow columns by name; missing columns are filled with 0 or empty strings.
        sums: a matrix with one row per output row and one column per name in ``SUMS``.
        maxima: a matrix with one row per output row and one column per name in ``MAXIMA``.
        cells: the cell numbers of all rows, ascending; see :func:`cell_numbers`.
        counts: the count of each cell.
    """
    length = len(sums)
    columns = []
    for name, kind_of_column in KEYS:
        if name == "kind":
            columns.append(pa.repeat(pa.scalar(kind, pa.int32()), length))
        elif name in keys:
            columns.append(_column(keys[name], _ARROW[kind_of_column]))
        else:
            default = "" if kind_of_column == "string" else 0
            columns.append(pa.repeat(pa.scalar(default, _ARROW[kind_of_column]), length))
    bounds = np.searchsorted(cells, np.arange(length + 1) * CELL_NUMBERS)
    columns += [
        _even_lists(sums),
        _even_lists(maxima),
        _lists(bounds, number_column(pa.int32(), (cells % CELL_NUMBERS).astype(np.int32))),
        _lists(bounds, number_column(pa.int64(), counts.astype(np.int64))),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def taken(columns: Mapping[str, Any], at: Numbers) -> dict[str, Any]:
    """Return the rows with the given indices of NumPy and Arrow columns."""
    indices = number_column(pa.int64(), at)
    return {
        name: each[at] if isinstance(each, np.ndarray) else each.take(indices)
        for name, each in columns.items()
    }


def cell_numbers(of_row: Numbers, cells: Numbers) -> Numbers:
    """Combine row numbers and cells into cell numbers for :func:`rows`."""
    return of_row * CELL_NUMBERS + cells


def counted(cells: Numbers, counts: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """Return the distinct cells, ascending, and their total counts (by default, 1 per cell)."""
    if counts is None:
        found, times = np.unique(cells, return_counts=True)
        return found, times.astype(np.int64)
    groups = Groups.by([cells])
    return cells[groups.first], groups.sums(counts)


def merged(batches: Iterable[Any]) -> list[Any]:
    """Merge the rows that have the same kind and key. Returns one record batch per kind."""
    # The schema of the first batch is used, not SCHEMA: Spark names list elements differently.
    filled = [each for each in batches if each.num_rows]
    if not filled:
        return []
    [whole] = pa.Table.from_batches(filled).combine_chunks().to_batches()
    kinds = whole["kind"].to_numpy()
    found = []
    for kind in np.unique(kinds):
        of_kind = kinds == kind
        found.append(
            _merged(int(kind), whole if of_kind.all() else whole.filter(pa.array(of_kind)))
        )
    return found


def _merged(kind: int, batch: Any) -> Any:
    keys = {
        name: batch[name] if column == "string" else batch[name].to_numpy()
        for name, column in KEYS
        if name != "kind"
    }
    groups = Groups.by(list(keys.values()))
    of_row, cells, counts = unfolded(batch)
    cells, counts = counted(cell_numbers(groups.of_row[of_row], cells), counts)
    return rows(
        kind,
        taken(keys, groups.first),
        groups.sums(matrix(batch["sums"], len(SUMS[kind]))),
        groups.maxima(matrix(batch["maxima"], len(MAXIMA[kind]))),
        cells,
        counts,
    )


def unfolded(batch: Any) -> tuple[Numbers, Numbers, Numbers]:
    """Return the cells of all rows as three arrays: row numbers, cells and counts."""
    bounds = batch["cells"].offsets.to_numpy().astype(np.int64)
    of_row = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    cells = batch["cells"].flatten().to_numpy().astype(np.int64)
    return of_row, cells, batch["counts"].flatten().to_numpy()


def matrix(lists: Any, width: int) -> Numbers:
    """Convert lists to a matrix with one row per list, and 0 for what a shorter list lacks.

    Lists are shorter in rows that an earlier version of the pipeline has left in the checkpoint.
    """
    flat: Numbers = lists.flatten().to_numpy()
    if len(flat) == len(lists) * width:
        return flat.reshape(len(lists), width)
    lengths = lists.value_lengths().to_numpy()
    found = np.zeros((len(lists), width), np.int64)
    found[np.arange(width) < lengths[:, None]] = flat
    return found


def _column(values: Any, kind: Any) -> Any:
    if isinstance(values, np.ndarray):
        return number_column(kind, values.astype(kind.to_pandas_dtype()))
    return values if values.type == kind else values.cast(kind)


def _even_lists(lines: Numbers) -> Any:
    bounds = np.arange(len(lines) + 1) * lines.shape[1]
    return _lists(bounds, number_column(pa.int64(), lines.astype(np.int64).reshape(-1)))


def _lists(bounds: Numbers, values: Any) -> Any:
    return pa.ListArray.from_arrays(number_column(pa.int32(), bounds.astype(np.int32)), values)
