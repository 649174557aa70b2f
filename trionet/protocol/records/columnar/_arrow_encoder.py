"""Encoding of Arrow columns into records. Imports pyarrow and numpy (extra ``spark``).

The varints of all records are computed at once, and Arrow joins the fields of each record in a
single call to C++. The records are the same as those of :class:`._pure_writer.BatchBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trionet.errors import LocalProtocolError
from trionet.protocol.records._batch import HEADER_SIZE
from trionet.protocol.records._types import EncodedRecords

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trionet.protocol.records.columnar._numpy_batches import Numbers

#: The record attributes, which are unused, and the timestamp delta.
_ZEROS: Final = 2
#: The maximum size of an offset delta in a batch of at most a million records.
_OFFSET_DELTA_BYTES: Final = 3
_RECORDS_MAX: Final = 2**20

_EMPTY: Final = pa.scalar(b"", pa.binary())
_NO_HEADERS: Final = pa.scalar(b"\0", pa.binary())


@attrs.frozen
class ArrowColumns:
    """The columns of records; slices share their memory.

    Attributes:
        values: the values, as binary or strings.
        keys: the keys, as binary or strings; None if all are null.
        headers: the headers, as lists of keys and values; None if no record has headers.
    """

    values: Any
    keys: Any = None
    headers: Any = None


def encode_arrow(columns: ArrowColumns, size_max: int) -> Iterator[EncodedRecords]:
    """Encode records into batches.

    Args:
        columns: the records.
        size_max: the maximum size of a batch in bytes, including its header and before compression;
            only a batch with a single record may be larger.

    Raises:
        LocalProtocolError: the key of a header is null.
        pyarrow.ArrowException: the records together are larger than 2 GB.
    """
    tails = None if columns.headers is None else _encoded_headers(columns.headers)
    value_lengths = _lengths(columns.values)
    if not (rows := len(value_lengths)):
        return
    key_lengths = np.full(rows, -1) if columns.keys is None else _lengths(columns.keys)
    sizes = _ZEROS + _width(key_lengths) + np.maximum(key_lengths, 0)
    sizes += _width(value_lengths) + np.maximum(value_lengths, 0)
    sizes += 1 if tails is None else _lengths(tails)
    starts = _starts(sizes, size_max - HEADER_SIZE)
    counts = np.diff([*starts, rows])
    offsets = np.arange(rows) - np.repeat(starts, counts)
    zeros = np.zeros(rows, np.int64)
    head = [sizes + _width(offsets), *[zeros] * _ZEROS, offsets, key_lengths]
    parts = [_varints([*head, value_lengths] if columns.keys is None else head)]
    if columns.keys is not None:
        parts += _binary(columns.keys), _varints([value_lengths])
    parts += _binary(columns.values), _NO_HEADERS if tails is None else tails
    joined = _joined(parts)
    for start, count in zip(starts, counts.tolist(), strict=True):
        yield EncodedRecords(_data(joined.slice(start, count)), count)


def _starts(sizes: Numbers, size_max: int) -> list[int]:
    """Return the first record of each batch; the sizes exclude lengths and offset deltas."""
    sizes = sizes + _OFFSET_DELTA_BYTES
    ends = np.cumsum(sizes + _width(sizes))
    starts: list[int] = []
    start = before = 0
    while start < len(sizes):
        starts.append(start)
        stop = max(int(np.searchsorted(ends, before + size_max, "right")), start + 1)
        start = min(stop, start + _RECORDS_MAX)
        before = int(ends[start - 1])
    return starts


def _encoded_headers(column: Any) -> Any:
    """Encode the number of headers and the headers of each record."""
    keys, contents = column.flatten().flatten()  # without the elements under nulls
    if keys.null_count:
        raise LocalProtocolError("the key of a record header is null")
    pairs = _joined(
        [
            _varints([_lengths(keys)]),
            _binary(keys),
            _varints([_lengths(contents)]),
            _binary(contents),
        ]
    )
    counts = column.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(counts)])
    _, offsets, data = pairs.buffers()
    bounds = np.frombuffer(offsets, np.int32)[ends] if len(pairs) else ends.astype(np.int32)
    each = pa.BinaryArray.from_buffers(
        pa.binary(), len(column), [None, pa.py_buffer(bounds), data or pa.py_buffer(b"")]
    )
    return _joined([_varints([counts]), each])


def _joined(parts: Sequence[Any]) -> Any:
    return pc.binary_join_element_wise(
        *parts, _EMPTY, null_handling="replace", null_replacement=b""
    )


def _data(column: Any) -> bytes:
    """Return the bytes of all items of a binary column."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)
    start, stop = int(bounds[column.offset]), int(bounds[column.offset + len(column)])
    found: bytes = data.slice(start, stop - start).to_pybytes()
    return found


def _binary(column: Any) -> Any:
    """Return a column as binary; strings are UTF-8 already."""
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _lengths(column: Any) -> Numbers:
    """Return the length of each item in bytes; -1 for null."""
    lengths = pc.binary_length(column)
    if column.null_count:
        lengths = lengths.fill_null(-1)
    found: Numbers = lengths.to_numpy().astype(np.int64)
    return found


def _width(numbers: Numbers) -> Numbers:
    """Return the size of the varint of each number of at least -1."""
    widths = np.ones(len(numbers), np.int64)
    largest = int(numbers.max(initial=0))
    shift = 6  # the zigzag encoding takes one of the 7 bits of the first byte
    while largest >> shift:  # seldom twice: two bytes hold all numbers up to 8,191
        widths += numbers >= 1 << shift
        shift += 7
    return widths


def _varints(columns: Sequence[Numbers]) -> Any:
    """Return the zigzag varints of numbers of at least -1, joined by row, as a binary column."""
    rows = len(columns[0])
    widths = [_width(each) for each in columns]
    widest = [int(each.max(initial=1)) for each in widths]
    row_bytes = np.sum(widths, axis=0)
    # A row has the bytes of the widest varints; only those that its own numbers need are kept.
    encoded = np.empty((rows, sum(widest)), np.uint8)
    is_used = np.ones(encoded.shape, np.bool_)
    is_ragged = bool((row_bytes < sum(widest)).any())
    place = 0
    for numbers, width, size in zip(columns, widths, widest, strict=True):
        rest = numbers << 1 ^ numbers >> 63
        for step in range(1, size):
            is_longer = width > step
            encoded[:, place] = rest & 127 | is_longer << 7
            rest >>= 7
            place += 1
            if is_ragged:
                is_used[:, place] = is_longer
        encoded[:, place] = rest
        place += 1
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum(row_bytes, out=ends[1:])
    data: NDArray[np.uint8] = encoded[is_used] if is_ragged else encoded
    return pa.BinaryArray.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )
