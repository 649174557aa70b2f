"""Many batches at once, as NumPy arrays: their headers, and where each of their records begins.

A record begins where the one before it ends, so that these are found one after the other; but in
all batches of an answer at the same time. Imports numpy, which is of the extra ``spark``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trionet.errors import WireFormatError
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import HEADER_SIZE, PREFIX_SIZE, BatchHeader, Bytes
from trionet.protocol.records._records import INFLATED_BYTES_MAX, RECORD_BYTES_MIN, whole
from trionet.protocol.records.columnar._numpy_varints import Numbers, Spans
from trionet.protocol.records.compression._codecs import decompress

#: Elements of ``BATCH_HEADER``.
BatchHeaders: TypeAlias = NDArray[Any]

#: :class:`.BatchHeader` as it is in a batch.
BATCH_HEADER: Final = np.dtype(
    list(
        zip(
            BatchHeader._fields,
            (
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
            ),
            strict=True,
        )
    )
)

#: The attributes that say which codec it is.
CODEC: Final = 7

#: How many batches there have to be for each record of the largest, so that a step in all of them
#: takes less time than a loop over their records.
LANES_MIN: Final = 64


def read_headers(buf: Bytes, places: Numbers) -> BatchHeaders:
    """The headers of the batches at these places, which have the room for them."""
    # One at every byte; those at the places are copied.
    count = max(len(buf) - HEADER_SIZE + 1, 0)
    every = np.ndarray((count,), BATCH_HEADER, buf, strides=(1,))
    headers: BatchHeaders = every[places]
    return headers


class OpenedBatches(NamedTuple):
    """Batches whose records are in one buffer; the arguments of :func:`.decode_batches`.

    Attributes:
        body: holds the records of all, decompressed.
        starts: where those of each batch begin.
        ends: where they end.
        headers: of the batches.
    """

    body: Bytes
    starts: Numbers
    ends: Numbers
    headers: BatchHeaders


def opened_together(
    buf: Bytes, places: Numbers, headers: BatchHeaders, bytes_max: int
) -> Iterator[OpenedBatches]:
    """Batches with about so many bytes of records at a time; only what is compressed is copied.

    Args:
        buf: holds the batches.
        places: where they begin.
        headers: of them.
        bytes_max: a batch that goes beyond it is the last of its time.

    Raises:
        WireFormatError: a batch cannot be decompressed, or has not the room for its records.
    """
    starts, ends = places + HEADER_SIZE, places + PREFIX_SIZE + headers["length"]
    codecs = headers["attributes"] & CODEC
    if not codecs.any():
        _check_room(starts, ends, headers)
        numbers = np.cumsum(ends - starts) // bytes_max
        cuts = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
        for begun, end in pairwise([0, *cuts, len(places)]):
            if begun < end:
                yield OpenedBatches(buf, starts[begun:end], ends[begun:end], headers[begun:end])
        return
    pieces: list[Bytes] = []
    size = begun = 0
    with memoryview(buf) as view:
        spans = zip(starts.tolist(), ends.tolist(), codecs.tolist(), strict=True)
        for number, (start, end, codec) in enumerate(spans, 1):
            piece = view[start:end]
            pieces.append(decompress(codec, piece, INFLATED_BYTES_MAX) if codec else piece)
            size += len(pieces[-1])
            if size >= bytes_max or number == len(places):
                yield _joined(pieces, headers[begun:number])
                pieces, size, begun = [], 0, number


def _joined(pieces: list[Bytes], headers: BatchHeaders) -> OpenedBatches:
    ends = np.cumsum([len(each) for each in pieces])
    starts = np.concatenate([[0], ends[:-1]])
    _check_room(starts, ends, headers)
    return OpenedBatches(b"".join(pieces), starts, ends, headers)


def _check_room(starts: Numbers, ends: Numbers, headers: BatchHeaders) -> None:
    """As :func:`.open_batch` does: nobody makes room for a count that cannot be."""
    wrong = np.flatnonzero(
        (headers["count"] < 0) | (headers["count"] > (ends - starts) // RECORD_BYTES_MIN)
    )
    if len(wrong):
        count = headers["count"][wrong[0]]
        raise WireFormatError(f"{count} records cannot be in a batch of this size")


def record_starts(body: Bytes, starts: Numbers, ends: Numbers, counts: Numbers) -> Numbers:
    """Where each record begins, with its size.

    Args:
        body: holds the records.
        starts: where those of each batch begin.
        ends: where they end.
        counts: how many they are.

    Raises:
        WireFormatError: they do not end where their batch does, or are cut short.
    """
    if len(counts) and counts.sum() >= LANES_MIN * counts.max():
        try:
            found = _in_step(body, starts, ends, counts)
        except IndexError as error:
            raise WireFormatError("a record ends too early") from error
        if found is not None:
            return found
    return _one_by_one(body, starts, ends, counts)


def _in_step(body: Bytes, starts: Numbers, ends: Numbers, counts: Numbers) -> Numbers | None:
    """A step goes to the next record of all batches that have one; None if a length is long."""
    records = Spans(np.frombuffer(body, np.uint8))
    order = np.argsort(-counts, kind="stable")  # so that those that have one are the first
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
        raise WireFormatError("a batch's records do not end where it does")
    return found


def _one_by_one(body: Bytes, starts: Numbers, ends: Numbers, counts: Numbers) -> Numbers:
    data = body if type(body) is bytes else bytes(body)  # a loop over anything else is slow
    read = implementation.reader.read_starts
    found: list[int] = []
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        found += whole(read, end, data, start, count)
    return np.array(found, np.int64)
