"""Vectorized decoding of batch headers and varints, and the search for the start of each record.

A record starts where the previous record ends, so the records of a batch can only be found
sequentially. The search therefore advances through all batches of a response in parallel.

Nearly all varints have one or two bytes, and only 65,536 pairs of bytes exist. Looking up the pairs
takes one numpy call for all positions. Shifting and masking would take a dozen calls, whose
overhead dominates if the number of positions is small. Imports numpy (extra ``spark``).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trionet.errors import WireFormatError
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import HEADER_SIZE, BatchHeader, Bytes
from trionet.protocol.records._records import read_to_end

Numbers: TypeAlias = NDArray[np.int64]

#: The shift of the tenth and last byte of the longest varint.
_SHIFT_MAX: Final = 63

_PAIRS: Final = np.arange(1 << 16, dtype=np.uint16)
_FIRST: Final = _PAIRS & 255
_SECOND: Final = _PAIRS >> 8
_UNSIGNED: Final = np.where(_FIRST < 128, _FIRST, _SECOND << 7 | _FIRST & 127)

#: By byte pair: the size of the varint at the start of the pair; 0 if it has more than two bytes.
_WIDTHS: Final = np.where(_FIRST < 128, 1, np.where(_SECOND < 128, 2, 0)).astype(np.int8)
#: By byte pair: the zigzag-decoded number.
_NUMBERS: Final = (_UNSIGNED >> 1).view(np.int16) ^ -(_UNSIGNED & 1).view(np.int16)
#: By byte pair: the size of the varint plus the length that it encodes; 0 if the length is negative
#: or has more than two bytes.
_SPANS: Final = np.where((_WIDTHS > 0) & (_NUMBERS >= 0), _WIDTHS + _NUMBERS, 0).astype(np.int16)


def varints(data: NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers]:
    """Decode the zigzag varints at these positions.

    Args:
        data: the buffer.
        at: the positions of the varints.

    Returns:
        The numbers, and the positions after the varints.

    Raises:
        IndexError: a varint extends past the end of the data.
        WireFormatError: a varint has more than 64 bits.
    """
    # Clipped, since a varint of one byte may be the last byte of the data.
    pairs = data[1:].take(at, mode="clip").astype(np.uint16)
    pairs <<= 8
    pairs |= data.take(at)
    widths = _WIDTHS.take(pairs)
    numbers = _NUMBERS.take(pairs).astype(np.int64)
    after = at + widths
    if not widths.all():
        longer = np.flatnonzero(widths == 0)
        numbers[longer], after[longer] = _long_varints(data, at[longer])
    return numbers, after


def _long_varints(data: NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers]:
    """Decode varints of any length, one byte of each varint per step."""
    byte = data[at]
    numbers = (byte & 127).astype(np.uint64)
    at = at + 1
    shift = 7
    pending = np.flatnonzero(byte > 127)  # most have one byte
    while len(pending):
        if shift > _SHIFT_MAX:
            raise WireFormatError("varint longer than ten bytes")
        byte = data[at[pending]]
        if shift == _SHIFT_MAX and np.any((byte > 1) & (byte < 128)):
            raise WireFormatError("varint with more than 64 bits")
        numbers[pending] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        at[pending] += 1
        pending = pending[byte > 127]
        shift += 7
    signs = (numbers & np.uint64(1)).view(np.int64)
    return (numbers >> np.uint64(1)).view(np.int64) ^ -signs, at


class Spans:
    """A buffer of adjacent items that start with their length, such as records.

    Args:
        data: the buffer.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        # A view of the pair of bytes at every position.
        count = max(len(data) - 1, 0)
        self._pairs: NDArray[Any] = np.ndarray((count,), "<u2", data, strides=(1,))

    def skip(self, at: Numbers) -> bool:
        """Advance each position, in place, past the item at the position.

        Returns:
            False if any length is negative or has more than two bytes; the positions of these items
            are not advanced.

        Raises:
            IndexError: a position is at or beyond the last byte of the buffer.
        """
        spans = _SPANS.take(self._pairs[at])
        at += spans
        return bool(spans.all())


#: An array of elements of the type ``BATCH_HEADER``.
BatchHeaders: TypeAlias = NDArray[Any]

#: The binary layout of :class:`.BatchHeader`.
BATCH_HEADER: Final = np.dtype(
    list(
        zip(
            BatchHeader._fields,
            [
                ">i8",
                ">i4",
                ">i4",
                "i1",
                ">u4",
                ">i2",
                ">i4",
                ">i8",
                ">i8",
                ">i8",
                ">i2",
                ">i4",
                ">i4",
            ],
            strict=True,
        )
    )
)

#: The parallel search is faster than a loop over the records if there are at least this many times
#: as many records as in the largest batch.
LANES_MIN: Final = 64


def read_headers(buf: Bytes, places: Numbers) -> BatchHeaders:
    """Decode the headers of the batches at ``places``, which must be complete."""
    # A view with a header at every byte; those at the positions are copied.
    count = max(len(buf) - HEADER_SIZE + 1, 0)
    every = np.ndarray((count,), BATCH_HEADER, buf, strides=(1,))
    headers: BatchHeaders = every[places]
    return headers


class OpenedBatches(NamedTuple):
    """Batches whose decompressed records are in one buffer, as :func:`.decode_batches` expects.

    Attributes:
        body: the buffer that contains the records of all batches.
        starts: the start of the records of each batch.
        ends: the end of the records of each batch.
        headers: the headers of the batches.
    """

    body: Bytes
    starts: Numbers
    ends: Numbers
    headers: BatchHeaders


def record_starts(body: Bytes, starts: Numbers, ends: Numbers, counts: Numbers) -> Numbers:
    """Return the start of each record, which is the position of its length.

    Args:
        body: the buffer that contains the records.
        starts: the start of the records of each batch.
        ends: the end of the records of each batch.
        counts: the number of records of each batch.

    Raises:
        WireFormatError: the records of a batch are truncated, or end before the end of the batch.
    """
    if len(counts) and counts.sum() >= LANES_MIN * counts.max():
        try:
            found = _in_parallel(body, starts, ends, counts)
        except IndexError as error:
            raise WireFormatError("truncated record") from error
        if found is not None:
            return found
    return _one_by_one(body, starts, ends, counts)


def _in_parallel(body: Bytes, starts: Numbers, ends: Numbers, counts: Numbers) -> Numbers | None:
    """Find the start of each record, advancing all batches by one record per step.

    Returns None if the length of a record has more than two bytes.
    """
    records = Spans(np.frombuffer(body, np.uint8))
    order = np.argsort(-counts, kind="stable")  # so that batches with a next record come first
    at = starts[order]
    numbers = (np.cumsum(counts) - counts)[order]
    lanes = np.searchsorted(-counts[order], -np.arange(counts.max()), "left")
    found = np.empty(counts.sum(), np.int64)
    for count in lanes.tolist():
        here, number = at[:count], numbers[:count]
        found[number] = here
        if not records.skip(here):
            return None
        number += 1
    if not np.array_equal(at, ends[order]):
        raise WireFormatError("the records of a batch do not end where the batch ends")
    return found


def _one_by_one(body: Bytes, starts: Numbers, ends: Numbers, counts: Numbers) -> Numbers:
    data = body if type(body) is bytes else bytes(body)  # iterating over bytes is fastest
    read = implementation.reader.read_starts
    found: list[int] = []
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        found += read_to_end(read, end, data, start, count)
    return np.fromiter(found, np.int64, len(found))  # faster than np.array for a list
