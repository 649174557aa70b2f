"""The fields of a batch as NumPy arrays; keys and values stay where they are.

Only the records' sizes have to be read one after the other. Everything else is found for all
records at once, and no object is made for any of them. Imports numpy, which is of the extra
``spark``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trionet.errors import WireFormatError
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import Bytes
from trionet.protocol.records._records import INFLATED_BYTES_MAX, open_batch
from trionet.protocol.records._types import Headers
from trionet.protocol.records.columnar._numpy_batches import (
    BATCH_HEADER,
    BatchHeaders,
    record_starts,
)
from trionet.protocol.records.columnar._numpy_varints import Numbers, varints

#: The attribute of a batch whose records' timestamps are the log's.
TIMESTAMP_OF_LOG: Final = 0x8


class NumpyColumns(NamedTuple):
    """The records of a batch, as arrays of int64.

    Attributes:
        body: what holds the keys and values: the batch itself, or its records decompressed.
        offsets: of the records.
        timestamps: in milliseconds.
        key_starts: where each key begins in ``body``.
        key_lengths: in bytes; -1 for null.
        value_starts: where each value begins.
        value_lengths: in bytes; -1 for null.
        headers: of the records that have any, by their number in the batch.
    """

    body: Bytes
    offsets: Numbers
    timestamps: Numbers
    key_starts: Numbers
    key_lengths: Numbers
    value_starts: Numbers
    value_lengths: Numbers
    headers: dict[int, Headers]


def decode_numpy(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> NumpyColumns:
    """Read the batch at ``pos`` as arrays. Its checksum is not looked at.

    Args:
        buf: what holds the batch, whole; bytes are not copied.
        pos: where it starts.
        inflated_bytes_max: how far the records may grow when decompressed.

    Raises:
        WireFormatError: as :func:`trionet.protocol.records._records.decode_batch`.
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
    """Read the records of several batches at once: small ones cost hardly more than large ones.

    Args:
        body: holds the records of all, decompressed; it is not copied.
        starts: where those of each batch begin.
        ends: where they end.
        headers: of the batches.
        with_headers: otherwise those of records are passed over.

    Raises:
        WireFormatError: the records of one are malformed.
    """
    counts = headers["count"].astype(np.int64)
    places = record_starts(body, starts, ends, counts)
    try:
        columns = _columns(body, places, with_headers)
    except IndexError as error:
        raise WireFormatError("a record ends too early") from error
    except UnicodeDecodeError as error:
        raise WireFormatError("a record header's key is not UTF-8") from error
    timestamps = _plus(_of_records(headers, "base_timestamp", counts), columns.timestamps)
    is_logs = headers["attributes"] & TIMESTAMP_OF_LOG != 0
    if is_logs.any():  # one for all, and the records' own mean nothing
        of_log = _of_records(headers, "max_timestamp", counts)
        timestamps = np.where(np.repeat(is_logs, counts), of_log, timestamps)
    return columns._replace(
        offsets=_plus(_of_records(headers, "base_offset", counts), columns.offsets),
        timestamps=timestamps,
    )


def _of_records(headers: BatchHeaders, name: str, counts: Numbers) -> Numbers:
    """What the headers say, for each record."""
    return np.repeat(headers[name].astype(np.int64), counts)


def _columns(body: Bytes, starts: Numbers, with_headers: bool) -> NumpyColumns:
    """Offsets and timestamps are relative to those of the batch."""
    data = np.frombuffer(body, np.uint8)
    sizes, at = varints(data, starts)
    ends = at + sizes
    timestamps, at = varints(data, at + 1)  # behind the attributes, which mean nothing yet
    offsets, at = varints(data, at)
    key_lengths, key_starts = varints(data, at)
    at = key_starts + _checked(key_lengths, len(body))
    value_lengths, value_starts = varints(data, at)
    at = value_starts + _checked(value_lengths, len(body))
    headers: dict[int, Headers] = {}
    has_headers = np.flatnonzero(data[at])
    if not with_headers:
        at[has_headers] = np.maximum(at[has_headers], ends[has_headers] - 1)
    elif len(has_headers):
        whole = body if type(body) is bytes else bytes(body)
        for number in has_headers.tolist():
            headers[number], end = implementation.reader.read_headers(whole, int(at[number]))
            at[number] = end - 1
    if not np.array_equal(at + 1, ends):
        raise WireFormatError("a record's length is not that of its fields")
    return NumpyColumns(
        body, offsets, timestamps, key_starts, key_lengths, value_starts, value_lengths, headers
    )


def _checked(lengths: Numbers, size: int) -> Numbers:
    """Lengths of keys or values, with 0 for null."""
    if len(lengths) and lengths.min() < -1:
        raise WireFormatError(f"a record has a field of negative length {lengths.min()}")
    if len(lengths) and lengths.max() > size:
        raise IndexError
    return np.maximum(lengths, 0)


def _plus(bases: Numbers, deltas: Numbers) -> Numbers:
    sums = deltas + bases
    if np.any((sums ^ deltas) & (sums ^ bases) < 0):
        raise WireFormatError("a record's offset or timestamp is beyond 64 bits")
    return sums
