"""Names segment files, and locates the batches in a log file by reading their headers.

Every function is thread-safe and may block on disk I/O.
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...._util.files._log_file import LogFile
from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import CORRUPT_MESSAGE
from ....protocol.records._batch import HEADER_SIZE, PREFIX_SIZE, BatchHeader, read_header
from ....protocol.records._records import EndTransactionMarker, decode_batch, read_marker

#: Follow the names of the files that cleaning has written: first the one; once these files count
#: instead of those of the segments that they replace, the other (see :mod:`._swap`).
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

# One read covers the batches between two index entries, which are 4 KB apart by Kafka's default.
SCAN_BYTES: Final = 8192

# A marker has 78 bytes. Later versions may add fields, but nothing of this size is a marker.
_MARKER_BYTES_MAX: Final = 1024

# Base offset, length, (epoch, magic, CRC, attributes), last offset delta.
_PLACE = struct.Struct(">qi11xi")


class BatchPlace(NamedTuple):
    """The offsets of one batch, and its place in the segment's log file."""

    base_offset: int
    last_offset: int
    position: int
    size: int


def file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file, such as ``00000000000000000042.log``."""
    return f"{base_offset:020d}.{suffix}"


def is_offset(stem: str) -> bool:
    """Return whether a file name without its suffix is the base offset of a segment."""
    return stem.isascii() and stem.isdigit() and len(stem) <= 20 and int(stem) < 2**63


def header_at(file: LogFile, position: int) -> BatchHeader:
    """Read the header of the batch at a position.

    Raises:
        WireFormatError: no batch starts there.
    """
    return read_header(file.read_at(position, HEADER_SIZE))


def marker_at(file: LogFile, header: BatchHeader, position: int) -> EndTransactionMarker | None:
    """Read the transaction marker of the control batch at a position.

    Returns None if the batch ends no transaction: because it is of another type, because compaction
    has removed its record together with the transaction (Kafka: ProducerAppendInfo), or because it
    is malformed.
    """
    if header.size > _MARKER_BYTES_MAX:
        return None
    try:
        for _, _, key, value, _ in decode_batch(file.read_at(position, header.size)):
            return read_marker(key, value)
    except WireFormatError:
        pass
    return None


def has_batch_at(file: LogFile, position: int, last_offset: int) -> bool:
    """Return whether a batch that ends with ``last_offset`` starts at a position."""
    head = file.read_at(position, _PLACE.size)
    if len(head) < _PLACE.size:
        return False
    base_offset, length, last_delta = _PLACE.unpack(head)
    is_last: bool = base_offset + last_delta == last_offset
    return is_last and length >= HEADER_SIZE - PREFIX_SIZE


def batches_from(
    file: LogFile, position: int, limit: int, base_offset: int
) -> Iterator[BatchPlace]:
    """Yield the batches from ``position`` up to ``limit``. Reads only headers.

    Args:
        file: the log file.
        position: the position of the first batch.
        limit: the size of the segment.
        base_offset: the base offset of the segment, used in messages.

    Raises:
        ApiError: CORRUPT_MESSAGE if the bytes found are not a batch.
    """
    while position < limit:
        chunk = file.read_at(position, min(SCAN_BYTES, limit - position))
        at, last_start = 0, len(chunk) - _PLACE.size
        while at <= last_start:
            first_offset, length, last_delta = _PLACE.unpack_from(chunk, at)
            size = length + PREFIX_SIZE
            if size < HEADER_SIZE or last_delta < 0:
                break
            yield BatchPlace(first_offset, first_offset + last_delta, position + at, size)
            at += size
        if not at:
            raise ApiError(
                CORRUPT_MESSAGE,
                f"{file_name(base_offset, 'log')}: no record batch starts at byte {position}",
            )
        position += at
