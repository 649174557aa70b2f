"""Encoding of Arrow columns into records. Imports pyarrow and numpy (extra ``spark``).

The varints of all records are computed at once. A single call to C++ then puts the fields of each
record next to each other: the columns are laid end to end, and the fields are taken from there in
the order of the records. The records are the same as those of :class:`.._pure_writer.BatchBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trionet.errors import LocalProtocolError
from trionet.protocol.records._batch import HEADER_SIZE
from trionet.protocol.records._types import EncodedRecords

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: Of 32 bits, as in Arrow's columns: numpy computes twice as many of them in a step as of 64.
    Numbers = NDArray[np.int32]

#: A pa.BinaryArray; pyarrow has no type hints.
Column: TypeAlias = Any

#: The record attributes, which are unused, and the timestamp delta.
_ZEROS: Final = 0, 0
#: The maximum size of an offset delta in a batch of at most a million records.
_OFFSET_DELTA_BYTES: Final = 3
_RECORDS_MAX: Final = 2**20

_NO_HEADERS: Final = b"\0"


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
    """Encode records into batches; see :func:`encode_groups`."""
    rows = len(columns.values)
    for _, records in encode_groups(columns, np.arange(rows), [rows], size_max):
        yield records


def encode_groups(
    columns: ArrowColumns, order: NDArray[np.int64], counts: Sequence[int], size_max: int
) -> Iterator[tuple[int, EncodedRecords]]:
    """Encode groups of records, such as those of each partition, into batches.

    The groups share all calls to numpy and Arrow, each of which costs as much as many records.

    Args:
        columns: the records.
        order: the indices of the records to encode, group after group.
        counts: the number of records in each group.
        size_max: the maximum size of a batch in bytes, including its header and before compression;
            only a batch with a single record may be larger.

    Yields:
        The index of the group, and the next of its batches.

    Raises:
        LocalProtocolError: the key of a header is null.
        pyarrow.ArrowException: the records together are larger than 2 GB.
    """
    values = _binary(columns.values)
    keys = [] if columns.keys is None else [_binary(columns.keys)]
    headers = [] if columns.headers is None else _encoded_headers(columns.headers)
    value_lengths = _lengths(values)
    key_lengths = [_lengths(each) for each in keys]
    sizes = len(_ZEROS) + _size(value_lengths)
    sizes += sum(map(_size, key_lengths)) if keys else 1
    sizes += sum(map(_lengths, headers)) if headers else len(_NO_HEADERS)
    starts = _starts(sizes[order], counts, size_max - HEADER_SIZE)
    firsts = [start for _, start in starts]
    offsets = np.zeros_like(sizes)
    offsets[order] = _offsets(firsts, len(order))
    head: list[Numbers | int] = [sizes + _width(offsets), *_ZEROS, offsets]
    head += key_lengths or [-1]
    if not headers:
        # What ends each record begins the next one here, which takes no column of its own.
        head.insert(0, 0)
    if keys:
        fields = [_varints(head), *keys, _varints([value_lengths]), values, *headers]
    else:
        fields = [_varints([*head, value_lengths]), values, *headers]
    bounds, data = _interleaved(fields, order)
    end = b"" if headers else _NO_HEADERS
    for (group, start), stop in zip(starts, [*firsts, len(order)][1:], strict=True):
        records = data[bounds[start] + len(end) : bounds[stop]]
        yield group, EncodedRecords(b"".join((records, end)), stop - start)


def _starts(sizes: Numbers, counts: Sequence[int], size_max: int) -> list[tuple[int, int]]:
    """Return the group and the first record of each batch.

    The sizes exclude lengths and offset deltas.
    """
    sizes = sizes + _OFFSET_DELTA_BYTES
    ends = np.cumsum(sizes + _width(sizes))
    starts: list[tuple[int, int]] = []
    start = before = 0
    for group, end in enumerate(accumulate(counts)):
        while start < end:
            starts.append((group, start))
            stop = max(int(np.searchsorted(ends, before + size_max, "right")), start + 1)
            start = min(stop, start + _RECORDS_MAX, end)
            before = int(ends[start - 1])
    return starts


def _offsets(starts: Sequence[int], rows: int) -> Numbers:
    """Return the offset of each record in its batch."""
    counts = np.diff([*starts, rows])
    begins = np.array(starts, np.int32)
    offsets: Numbers = np.arange(rows, dtype=np.int32) - np.repeat(begins, counts)
    return offsets


def _encoded_headers(column: Any) -> list[Column]:
    """Encode the number of headers, and the headers, of each record."""
    keys, contents = column.flatten().flatten()  # without the elements under nulls
    if keys.null_count:
        raise LocalProtocolError("the key of a record header is null")
    keys, contents = _binary(keys), _binary(contents)
    fields = [_varints([_lengths(keys)]), keys, _varints([_lengths(contents)]), contents]
    bounds, data = _interleaved(fields, np.arange(len(keys)))
    counts: Numbers = column.value_lengths().fill_null(0).to_numpy().astype(np.int32)
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    return [_varints([counts]), _binary_column(bounds[ends], data)]


def _interleaved(columns: Sequence[Column], order: NDArray[np.int64]) -> tuple[Numbers, memoryview]:
    """Lay out the fields of one row after the other.

    Args:
        columns: the fields.
        order: the indices of the rows.

    Returns:
        Where each row begins, the end, and the bytes.
    """
    places = np.empty((len(order), len(columns)), np.int32)
    for number, column in enumerate(columns):
        np.add(order, number * len(column), out=places[:, number], casting="same_kind")
    taken = pa.concat_arrays(columns).take(pa.array(places.ravel()))
    _, offsets, data = taken.buffers()
    bounds = np.frombuffer(offsets, np.int32)[taken.offset :][: len(taken) + 1]
    return bounds[:: len(columns)], memoryview(data or b"")


def _binary(column: Any) -> Column:
    """Return a column as binary; strings are UTF-8 already."""
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _binary_column(bounds: Numbers, data: Any) -> Column:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(bounds)), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def _lengths(column: Column) -> Numbers:
    """Return the length of each item in bytes; -1 for null."""
    lengths = pc.binary_length(column)
    if column.null_count:
        lengths = lengths.fill_null(-1)
    found: Numbers = lengths.to_numpy()
    return found


def _width(numbers: Numbers) -> Numbers:
    """Return the size of the varint of each number of at least -1."""
    widths = np.ones_like(numbers)
    for step in range(1, _width_max(numbers)):
        widths += numbers >= 1 << 7 * step - 1  # zigzag takes a bit of the first byte
    return widths


def _width_max(numbers: Numbers) -> int:
    return max(1, -(-(int(numbers.max(initial=0)).bit_length() + 1) // 7))


def _size(lengths: Numbers) -> Numbers:
    """Return the size of each item of these lengths, and of its length."""
    sizes: Numbers = _width(lengths) + np.maximum(lengths, 0)
    return sizes


def _varints(columns: Sequence[Numbers | int]) -> Column:
    """Return the zigzag varints of numbers of at least -1, joined by row.

    Args:
        columns: the numbers; an int stands for the same small number in all rows.
    """
    [rows, *_] = [len(each) for each in columns if not isinstance(each, int)]
    widest = [1 if isinstance(each, int) else _width_max(each) for each in columns]
    # A row has the bytes of the widest varints; only those that its own numbers need are kept.
    encoded = np.empty((rows, sum(widest)), np.uint8)
    is_used = np.ones(encoded.shape, np.bool_)
    row_bytes = np.full(rows, len(columns), np.int32)
    place = 0
    for numbers, width in zip(columns, widest, strict=True):
        rest = np.int32(numbers)
        rest = (rest << 1 ^ rest >> 31).view(np.uint32)
        for _ in range(1, width):
            is_longer = rest > 127
            encoded[:, place] = rest | is_longer.view(np.uint8) << 7
            rest = rest >> 7
            place += 1
            is_used[:, place] = is_longer
            row_bytes += is_longer
        encoded[:, place] = rest
        place += 1
    bounds = np.zeros(rows + 1, np.int32)
    np.cumsum(row_bytes, out=bounds[1:])
    return _binary_column(bounds, encoded if bounds[-1] == encoded.size else encoded[is_used])
