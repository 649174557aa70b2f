"""The records of a batch as columns of Apache Arrow. Imports pyarrow and numpy (extra ``spark``).

Offsets ``[start, end, start, end, ...]`` of all values in a batch only grow, so they make an Arrow
array, every other element of which is what lies between two values. Taking the rest of them copies
all values at once, in C++.
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

    from trionet.protocol.records.columnar._numpy_varints import Numbers

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)

#: From how many bytes a value on, to copy it twice takes longer than to take a piece more.
_LARGE_BYTES: Final = 256

#: Arrow's offsets of a binary column are int32.
_BYTES_MAX: Final = 2**31 - 1


def decode_arrow(buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX) -> Any:
    """Read the batch at ``pos`` as a ``pyarrow.RecordBatch``. Its checksum is not looked at.

    Its columns are those of ``SCHEMA``; headers are null where a record has none.

    Args:
        buf: what holds the batch, whole.
        pos: where it starts.
        inflated_bytes_max: how far the records may grow when decompressed; 2 GB at most.

    Raises:
        WireFormatError: as :func:`trionet.protocol.records._records.decode_batch`.
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
    """Numbers as a column that shares their memory.

    Not ``pa.array``, which imports pandas where there is one: half a second, and 40 MB.

    Args:
        type: as wide as the numbers are.
        numbers: without gaps between them.
        nulls: which are null; None for no one.
    """
    valid = None
    if nulls is not None:
        valid = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(type, len(numbers), [valid, pa.py_buffer(numbers)])


def binary_column(body: Bytes, starts: Numbers, lengths: Numbers) -> Any:
    """Pieces of a buffer, in their order there, as a column; null where a length is negative."""
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
    pieces = pa.BinaryArray.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(bounds), data])
    places = np.arange(0, 2 * count, 2, dtype=np.int64)
    if nulls.any():
        return pieces.take(number_column(pa.int64(), places, nulls))
    if bounds[-1] < _LARGE_BYTES * count:
        return pieces.take(number_column(pa.int64(), places))
    # Arrow makes room for as many average pieces as are taken, which are half as long as values,
    # and when it is full it copies everything. So the empty one is taken as often as the others.
    twice = np.full(2 * count, 2 * count - 1, np.int64)
    twice[:count] = places
    return pieces.take(number_column(pa.int64(), twice))[:count]


def headers_column(columns: NumpyColumns) -> Any:
    """The headers of records as a column, null where there are none."""
    count = len(columns.offsets)
    if not columns.headers:
        return pa.nulls(count, HEADERS)
    return pa.array([columns.headers.get(number) for number in range(count)], HEADERS)
