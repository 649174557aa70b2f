"""The fields of a batch as NumPy arrays; keys and values stay where they are.

Only the records' sizes have to be read one after the other. Everything else is found for all
records at once, and no object is made for any of them. Imports numpy, which is of the extra
``spark``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trionet.errors import WireFormatError
from trionet.protocol.records import implementation
from trionet.protocol.records.batch import BatchHeader, Bytes
from trionet.protocol.records.records import INFLATED_BYTES_MAX, open_batch, whole
from trionet.protocol.records.types import Headers

Numbers: TypeAlias = NDArray[np.int64]

#: How far a varint's last byte is shifted, at most.
_SHIFT_MAX: Final = 63


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

    body: bytes
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
        WireFormatError: as :func:`trionet.protocol.records.records.decode_batch`.
    """
    return decode_opened([open_batch(buf, pos, inflated_bytes_max)])


def decode_opened(
    batches: Sequence[tuple[BatchHeader, bytes, int, int]], *, with_headers: bool = True
) -> NumpyColumns:
    """Read the records of several batches at once: small ones cost hardly more than large ones.

    Args:
        batches: as :func:`.open_batch` gives them, at least one. What holds their records is copied
            only if it is not the same of all, as of those that were decompressed.
        with_headers: otherwise those of records are passed over.

    Raises:
        WireFormatError: the records of one are malformed.
    """
    body, places = _together(batches)
    headers = [each[0] for each in batches]
    starts: list[int] = []
    for header, (start, end) in zip(headers, places, strict=True):
        starts += whole(implementation.reader.read_starts, end, body, start, header.count)
    try:
        columns = _columns(body, np.array(starts, np.int64), with_headers)
    except IndexError as error:
        raise WireFormatError("a record ends too early") from error
    except UnicodeDecodeError as error:
        raise WireFormatError("a record header's key is not UTF-8") from error
    timestamps = _plus(_of_records(headers, "base_timestamp"), columns.timestamps)
    is_logs = _of_records(headers, "timestamp_type") == 1
    if is_logs.any():  # the log's: one for all, and the records' own mean nothing
        timestamps = np.where(is_logs, _of_records(headers, "max_timestamp"), timestamps)
    return columns._replace(
        offsets=_plus(_of_records(headers, "base_offset"), columns.offsets), timestamps=timestamps
    )


def _together(
    batches: Sequence[tuple[BatchHeader, bytes, int, int]],
) -> tuple[bytes, list[tuple[int, int]]]:
    """One buffer that has the records of all batches, and where those of each are."""
    body = batches[0][1]
    if all(each[1] is body for each in batches):
        return body, [(start, end) for _, _, start, end in batches]
    pieces = [memoryview(each)[start:end] for _, each, start, end in batches]
    ends = list(accumulate(map(len, pieces), initial=0))
    return b"".join(pieces), list(pairwise(ends))


def _of_records(headers: Sequence[BatchHeader], name: str) -> Numbers:
    """What the headers say, for each record."""
    values = np.array([getattr(each, name) for each in headers], np.int64)
    return np.repeat(values, [each.count for each in headers])


def _columns(body: bytes, starts: Numbers, with_headers: bool) -> NumpyColumns:
    """Offsets and timestamps are relative to those of the batch."""
    data = np.frombuffer(body, np.uint8)
    sizes, at = _varints(data, starts)
    ends = at + sizes
    timestamps, at = _varints(data, at + 1)  # behind the attributes, which mean nothing yet
    offsets, at = _varints(data, at)
    key_lengths, key_starts = _varints(data, at)
    at = key_starts + _checked(key_lengths, len(body))
    value_lengths, value_starts = _varints(data, at)
    at = value_starts + _checked(value_lengths, len(body))
    headers: dict[int, Headers] = {}
    has_headers = np.flatnonzero(data[at])
    if with_headers:
        for number in has_headers.tolist():
            headers[number], end = implementation.reader.read_headers(body, int(at[number]))
            at[number] = end - 1
    else:
        at[has_headers] = np.maximum(at, ends - 1)[has_headers]
    if not np.array_equal(at + 1, ends):
        raise WireFormatError("a record's length is not that of its fields")
    return NumpyColumns(
        body, offsets, timestamps, key_starts, key_lengths, value_starts, value_lengths, headers
    )


def _varints(data: NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers]:
    """The zigzag varints at these places, and where they end."""
    byte = data[at]
    numbers = (byte & 127).astype(np.uint64)
    at = at + 1
    shift = 7
    pending = np.flatnonzero(byte > 127)  # most are of one byte
    while len(pending):
        if shift > _SHIFT_MAX:
            raise WireFormatError("a varint is longer than ten bytes")
        byte = data[at[pending]]
        if shift == _SHIFT_MAX and np.any((byte > 1) & (byte < 128)):
            raise WireFormatError("a varint has more than 64 bits")
        numbers[pending] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        at[pending] += 1
        pending = pending[byte > 127]
        shift += 7
    signs = (numbers & np.uint64(1)).view(np.int64)
    return (numbers >> np.uint64(1)).view(np.int64) ^ -signs, at


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
