"""Decoding of batches into NumPy arrays, without copying keys and values.

Only the sizes of records must be read sequentially. All other fields are decoded with vectorized
operations, without creating an object per record. Imports numpy (extra ``spark``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trionet.errors import WireFormatError
from trionet.protocol.records._batch import Bytes
from trionet.protocol.records._records import INFLATED_BYTES_MAX, open_batch
from trionet.protocol.records.columnar._numpy_batches import (
    BATCH_HEADER,
    BatchHeaders,
    Numbers,
    record_starts,
    varints,
)
from trionet.protocol.records.columnar._numpy_headers import HeaderColumns, decode_headers

#: The attribute bit of the timestamp type LogAppendTime.
TIMESTAMP_OF_LOG: Final = 0x8


class NumpyColumns(NamedTuple):
    """The records of one or more batches, as arrays of int64.

    Attributes:
        body: the buffer that contains the keys and values: the batch, or its decompressed records.
        offsets: the offsets.
        timestamps: the timestamps, in milliseconds.
        key_starts: the position of each key in ``body``.
        key_lengths: the length of each key in bytes; -1 for null.
        value_starts: the position of each value in ``body``.
        value_lengths: the length of each value in bytes; -1 for null.
        headers: the headers; None if no record has headers, or if they were skipped.
    """

    body: Bytes
    offsets: Numbers
    timestamps: Numbers
    key_starts: Numbers
    key_lengths: Numbers
    value_starts: Numbers
    value_lengths: Numbers
    headers: HeaderColumns | None


def decode_numpy(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> NumpyColumns:
    """Decode the batch at ``pos`` into arrays, without verifying its checksum.

    Args:
        buf: the buffer that contains the complete batch; a ``bytes`` object is not copied.
        pos: the position of the batch.
        inflated_bytes_max: the limit on the decompressed size of the records.

    Raises:
        WireFormatError: see :func:`trionet.protocol.records._records.decode_batch`.
    """
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    headers = np.array([tuple(header)], BATCH_HEADER)
    return decode_batches(body, np.array([start]), np.array([end]), headers)


def decode_batches(
    body: Bytes,
    starts: Numbers,
    ends: Numbers,
    headers: BatchHeaders,
    *,
    with_headers: bool = True,
) -> NumpyColumns:
    """Decode the records of several batches with vectorized operations.

    Args:
        body: the buffer that contains the decompressed records of all batches; it is not copied.
        starts: the start of the records of each batch.
        ends: the end of the records of each batch.
        headers: the headers of the batches.
        with_headers: whether to decode record headers; otherwise they are skipped.

    Raises:
        WireFormatError: the records of a batch are malformed.
    """
    counts = headers["count"].astype(np.int64)
    places = record_starts(body, starts, ends, counts)
    try:
        columns = _columns(body, places, with_headers)
    except IndexError as error:
        raise WireFormatError("truncated record") from error
    timestamps = _plus(_of_records(headers, "base_timestamp", counts), columns.timestamps)
    is_log_append_time = headers["attributes"] & TIMESTAMP_OF_LOG != 0
    if is_log_append_time.any():  # one timestamp for all records of the batch
        of_log = _of_records(headers, "max_timestamp", counts)
        timestamps = np.where(np.repeat(is_log_append_time, counts), of_log, timestamps)
    return columns._replace(
        offsets=_plus(_of_records(headers, "base_offset", counts), columns.offsets),
        timestamps=timestamps,
    )


def _of_records(headers: BatchHeaders, name: str, counts: Numbers) -> Numbers:
    """Return a field of the batch headers, repeated for each record."""
    return np.repeat(headers[name].astype(np.int64), counts)


def _columns(body: Bytes, starts: Numbers, with_headers: bool) -> NumpyColumns:
    """Decode records, with offsets and timestamps relative to the base values of the batch."""
    data = np.frombuffer(body, np.uint8)
    sizes, at = varints(data, starts)
    ends = at + sizes
    timestamps, at = varints(data, at + 1)  # skips the attributes, which are unused
    offsets, at = varints(data, at)
    key_lengths, key_starts = varints(data, at)
    at = key_starts + _checked(key_lengths, len(body))
    value_lengths, value_starts = varints(data, at)
    at = value_starts + _checked(value_lengths, len(body))
    headers = None
    if not data[at].any():
        at += 1
    elif with_headers:
        headers, at = decode_headers(data, at)
    else:
        at = np.where(data[at] == 0, at + 1, np.maximum(at + 1, ends))
    if not np.array_equal(at, ends):
        raise WireFormatError("the length of a record does not match its fields")
    return NumpyColumns(
        body, offsets, timestamps, key_starts, key_lengths, value_starts, value_lengths, headers
    )


def _checked(lengths: Numbers, size: int) -> Numbers:
    """Check the lengths of keys or values, and return them with 0 for null."""
    if len(lengths) and lengths.min() < -1:
        raise WireFormatError(f"a record field has a negative length: {lengths.min()}")
    if len(lengths) and lengths.max() > size:
        raise IndexError
    return np.maximum(lengths, 0)


def _plus(bases: Numbers, deltas: Numbers) -> Numbers:
    sums = deltas + bases
    if np.any((sums ^ deltas) & (sums ^ bases) < 0):
        raise WireFormatError("the offset or timestamp of a record does not fit into 64 bits")
    return sums
