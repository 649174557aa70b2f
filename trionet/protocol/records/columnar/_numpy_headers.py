"""Decoding of record headers into NumPy arrays, without copying their keys and values.

A header starts where the previous header of its record ends, so the headers of one record can only
be found sequentially. Each step therefore decodes the next header of all records that have one. The
few records with more headers than the others are finished one header at a time: a step costs as
much as some twenty headers. Imports numpy (extra ``spark``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trionet.errors import WireFormatError
from trionet.protocol.records.columnar._numpy_batches import Numbers, varints

#: With fewer records than this, headers are decoded one at a time.
_LANES_MIN: Final = 20
#: The size in bytes of an empty header: the lengths of its key and value.
_HEADER_BYTES_MIN: Final = 2
#: A header has two places: its key and its value, each with a start and a length.
_PLACES: Final = 4
#: The shift of the fifth and last byte of a varint of 32 bits.
_SHIFT_MAX: Final = 28


class HeaderColumns(NamedTuple):
    """The headers of many records, in record order, as arrays of int64.

    Attributes:
        counts: the number of headers of each record; all other arrays have one item per header.
        key_starts: the position of each key, which is not checked to be valid UTF-8.
        key_lengths: the length of each key in bytes.
        value_starts: the position of each value.
        value_lengths: the length of each value in bytes; -1 for null.
    """

    counts: Numbers
    key_starts: Numbers
    key_lengths: Numbers
    value_starts: Numbers
    value_lengths: Numbers

    def of_records(self, records: Numbers) -> HeaderColumns:
        """Return the headers of the records with these ascending indices."""
        is_kept = np.zeros(len(self.counts), np.bool_)
        is_kept[records] = True
        headers = np.flatnonzero(np.repeat(is_kept, self.counts))
        return HeaderColumns(self.counts[records], *(each[headers] for each in self[1:]))


def decode_headers(data: NDArray[np.uint8], at: Numbers) -> tuple[HeaderColumns, Numbers]:
    """Decode the headers of records.

    Args:
        data: the buffer that contains the records.
        at: the position of each record's header count.

    Returns:
        The headers, and the position after the headers of each record.

    Raises:
        IndexError: the headers extend past the end of the data.
        WireFormatError: the headers are malformed.
    """
    counts, at = varints(data, at)
    room = len(data) // _HEADER_BYTES_MIN
    if len(counts) and not (0 <= counts.min() <= counts.max() <= room and counts.sum() <= room):
        raise WireFormatError(f"{counts.max()} record headers cannot fit into the batch")
    places = np.empty((_PLACES, counts.sum()), np.int64)
    firsts = np.cumsum(counts) - counts
    step = 0
    records = np.flatnonzero(counts)
    while len(records) >= _LANES_MIN:
        places[:, firsts[records] + step], at[records] = _next_headers(data, at[records])
        step += 1
        records = records[counts[records] > step]
    view = data.data
    for record in records.tolist():
        start, stop = int(firsts[record]) + step, int(firsts[record] + counts[record])
        places[:, start:stop], at[record] = _rest_of_record(view, int(at[record]), stop - start)
    return HeaderColumns(counts, *places), at


def _next_headers(data: NDArray[np.uint8], at: Numbers) -> tuple[list[Numbers], Numbers]:
    """Decode a header at each position. Returns its places, and the positions after the headers."""
    key_lengths, key_starts = varints(data, at)
    _check(key_lengths, 0, len(data))
    value_lengths, value_starts = varints(data, key_starts + key_lengths)
    _check(value_lengths, -1, len(data))
    ends = value_starts + np.maximum(value_lengths, 0)
    return [key_starts, key_lengths, value_starts, value_lengths], ends


def _rest_of_record(view: memoryview, at: int, count: int) -> tuple[Numbers, int]:
    """Decode adjacent headers. Returns their places, and the position after the last header."""
    places = np.empty((_PLACES, count), np.int64)
    for number in range(count):
        key_length, key_start = _read_length(view, at)
        value_length, value_start = _read_length(view, key_start + key_length)
        places[:, number] = key_start, key_length, value_start, value_length
        at = value_start + max(value_length, 0)
    _check(places[1], 0, len(view))
    _check(places[3], -1, len(view))
    return places, at


def _read_length(view: memoryview, at: int) -> tuple[int, int]:
    """Decode a zigzag varint of at most 32 bits. Returns the number and the position after it."""
    number = shift = 0
    while (byte := view[at]) > 127:
        number |= (byte & 127) << shift
        shift += 7
        at += 1
        if shift > _SHIFT_MAX:
            raise WireFormatError("the length of a record header field has more than 32 bits")
    number |= byte << shift
    return (number >> 1) ^ -(number & 1), at + 1


def _check(lengths: Numbers, lowest: int, size: int) -> None:
    if len(lengths) and lengths.min() < lowest:
        field = "value" if lowest else "key"
        raise WireFormatError(f"the {field} of a record header has the length {lengths.min()}")
    if len(lengths) and lengths.max() > size:
        raise IndexError
