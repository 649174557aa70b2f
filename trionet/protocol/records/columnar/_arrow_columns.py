"""Decoding of a batch into Arrow columns. Imports pyarrow and numpy (extra ``spark``).

The positions ``[start, end, start, end, ...]`` of the values in a batch are ascending. They are
therefore valid offsets of an Arrow array in which the values alternate with the gaps between them.
Taking every second element copies all values in a single call to C++.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from trionet.protocol.records._batch import Bytes
from trionet.protocol.records._records import INFLATED_BYTES_MAX
from trionet.protocol.records.columnar._numpy_columns import NumpyColumns, decode_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trionet.protocol.records.columnar._numpy_batches import Numbers

_KEY: Final = pa.field("key", pa.string())
_VALUE: Final = pa.field("value", pa.binary())
HEADERS: Final = pa.list_(pa.struct([_KEY, _VALUE]))
SCHEMA: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)

#: The mean value size from which :func:`binary_column` doubles Arrow's allocation.
_LARGE_BYTES: Final = 256

#: The maximum size of a binary column, since its offsets are int32.
_BYTES_MAX: Final = 2**31 - 1


def decode_arrow(buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX) -> Any:
    """Decode the batch at ``pos`` into a ``pyarrow.RecordBatch``, without verifying its checksum.

    The columns are defined by ``SCHEMA``; the headers of a record without headers are null.

    Args:
        buf: the buffer that contains the complete batch.
        pos: the position of the batch.
        inflated_bytes_max: the limit on the decompressed size of the records, capped at 2 GB.

    Raises:
        WireFormatError: see :func:`trionet.protocol.records._records.decode_batch`.
    """
    limit = min(inflated_bytes_max, _BYTES_MAX)
    columns = decode_numpy(buf, pos, inflated_bytes_max=limit)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(columns.offsets),
            pa.array(columns.timestamps).cast(SCHEMA.field("timestamp").type),
            binary_column(columns.body, columns.key_starts, columns.key_lengths),
            binary_column(columns.body, columns.value_starts, columns.value_lengths),
            headers_column(columns),
        ],
        schema=SCHEMA,
    )


def number_column(type: Any, numbers: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> Any:
    """Return an Arrow column that shares the memory of a NumPy array.

    ``pa.array`` would import pandas if it is installed, which takes half a second and 40 MB.

    Args:
        type: the Arrow type, of the same width as the numbers.
        numbers: a contiguous array.
        nulls: a mask of the nulls, or None for no nulls.
    """
    valid = None
    if nulls is not None:
        valid = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(type, len(numbers), [valid, pa.py_buffer(numbers)])


def binary_column(body: Bytes, starts: Numbers, lengths: Numbers) -> Any:
    """Return a column of ascending slices of a buffer; a negative length means null."""
    count = len(starts)
    nulls = lengths < 0
    if nulls.all():
        return pa.nulls(count, pa.binary())
    origin = int(starts[0])
    bounds = np.empty(2 * count + 1, np.int32)
    bounds[0:-1:2] = starts - origin
    bounds[1::2] = starts - origin + np.maximum(lengths, 0)
    bounds[-1] = bounds[-2]
    data = pa.py_buffer(memoryview(body)[origin:])
    slices = pa.BinaryArray.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(bounds), data])
    positions = np.arange(0, 2 * count, 2, dtype=np.int64)
    if nulls.any():
        return slices.take(number_column(pa.int64(), positions, nulls))
    if bounds[-1] < _LARGE_BYTES * count:
        return slices.take(number_column(pa.int64(), positions))
    # Arrow allocates the mean size of the elements times the number of elements to take. Gaps
    # halve that mean, so the allocation would be too small and grow by copying everything. Taking
    # the empty element at the end as often as there are values doubles the allocation.
    twice = np.full(2 * count, 2 * count - 1, np.int64)
    twice[:count] = positions
    return slices.take(number_column(pa.int64(), twice))[:count]


def headers_column(columns: NumpyColumns) -> Any:
    """Return the column of headers, which is null for records without headers.

    What is not UTF-8 in a key is replaced; see :func:`.read_headers`.
    """
    rows = len(columns.offsets)
    headers = columns.headers
    if headers is None or not len(headers.key_starts):
        return pa.nulls(rows, HEADERS)
    keys = binary_column(columns.body, headers.key_starts, headers.key_lengths)
    try:
        keys = keys.cast(_KEY.type)
    except pa.ArrowInvalid:
        texts = [str(key, "utf-8", "replace") for key in keys.to_pylist()]
        keys = pa.array(texts, _KEY.type)
    contents = binary_column(columns.body, headers.value_starts, headers.value_lengths)
    pairs = pa.StructArray.from_arrays([keys, contents], fields=[_KEY, _VALUE])
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum(headers.counts, out=ends[1:])
    nulls = headers.counts == 0
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    return pa.Array.from_buffers(HEADERS, rows, [valid, pa.py_buffer(ends)], children=[pairs])
