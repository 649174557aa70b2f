"""Decompression of many batches, for decoding them together. Imports pyarrow and numpy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from trionet.errors import DecompressionLimitError, WireFormatError
from trionet.protocol.records._batch import HEADER_SIZE, PREFIX_SIZE, Bytes
from trionet.protocol.records._records import RECORD_BYTES_MIN
from trionet.protocol.records.columnar._batch_parts import batch_parts
from trionet.protocol.records.columnar._numpy_batches import BatchHeaders, Numbers, OpenedBatches
from trionet.protocol.records.compression._codecs import decompress

#: The bit mask of the codec in the batch attributes.
CODEC: Final = 7

#: A batch of more than so many groups is decompressed in parts.
WHOLE_GROUPS: Final = 4


def open_batches(
    buf: Bytes,
    places: Numbers,
    headers: BatchHeaders,
    group_bytes: int,
    *,
    inflated_bytes_max: int,
) -> Iterator[OpenedBatches]:
    """Decompress batches and yield them in groups of limited size.

    If no batch is compressed, nothing is copied. A batch that is much larger than a group when it
    is decompressed is yielded in parts.

    Args:
        buf: the buffer that contains the batches.
        places: the positions of the batches.
        headers: the headers of the batches.
        group_bytes: the approximate size of a group or part in bytes.
        inflated_bytes_max: the limit on the decompressed size of a batch.

    Raises:
        WireFormatError: a batch cannot be decompressed, or is too small for its record count.
        DecompressionLimitError: a batch is larger than ``inflated_bytes_max``.
    """
    starts, ends = places + HEADER_SIZE, places + PREFIX_SIZE + headers["length"]
    codecs = headers["attributes"] & CODEC
    if not codecs.any():
        _check_counts(starts, ends, headers)
        numbers = np.cumsum(ends - starts) // group_bytes
        cuts = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
        for begun, end in pairwise([0, *cuts, len(places)]):
            if begun < end:
                yield OpenedBatches(buf, starts[begun:end], ends[begun:end], headers[begun:end])
        return
    bodies: list[Bytes] = []
    size = begun = 0
    limit = min(WHOLE_GROUPS * group_bytes, inflated_bytes_max)
    with memoryview(buf) as view:
        spans = zip(starts.tolist(), ends.tolist(), codecs.tolist(), strict=True)
        for number, (start, end, codec) in enumerate(spans):
            body = _decompressed(codec, view[start:end], limit)
            if body is not None:
                bodies.append(body)
                size += len(body)
            if bodies and (body is None or size >= group_bytes):
                yield _joined(bodies, headers[begun : begun + len(bodies)])
                bodies, size, begun = [], 0, begun + len(bodies)
            if body is None:
                yield from batch_parts(
                    codec,
                    view[start:end],
                    headers[number : number + 1],
                    part_bytes=group_bytes,
                    bytes_max=inflated_bytes_max,
                )
                begun = number + 1
        if bodies:
            yield _joined(bodies, headers[begun:])


def _decompressed(codec: int, data: Bytes, limit: int) -> Bytes | None:
    """Return the records of a batch; None if they are larger than the limit."""
    try:
        return decompress(codec, data, limit) if codec else data
    except DecompressionLimitError:
        return None


def _joined(bodies: list[Bytes], headers: BatchHeaders) -> OpenedBatches:
    ends = np.cumsum([len(each) for each in bodies])
    starts = np.concatenate([[0], ends[:-1]])
    _check_counts(starts, ends, headers)
    return OpenedBatches(b"".join(bodies), starts, ends, headers)


def _check_counts(starts: Numbers, ends: Numbers, headers: BatchHeaders) -> None:
    """Reject impossible record counts before memory is allocated for the records."""
    wrong = np.flatnonzero(
        (headers["count"] < 0) | (headers["count"] > (ends - starts) // RECORD_BYTES_MIN)
    )
    if len(wrong):
        count = headers["count"][wrong[0]]
        raise WireFormatError(f"{count} records cannot fit into a batch of this size")
