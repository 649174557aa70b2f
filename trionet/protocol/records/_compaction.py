"""What compaction does with a batch: note its keys, keep some of its records, leave it empty.

A batch keeps its offsets, sequence numbers and producer whatever is removed from it, and its codec
unless nothing is left (Kafka: MemoryRecords.filterTo, which builds it anew). Kept records are
slices of the old batch; only a delete horizon (KIP-534), which takes the place of the base
timestamp, changes the timestamp deltas.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final, NamedTuple

from trionet._util._raising import raise_from
from trionet.errors import WireFormatError
from trionet.protocol.records._batch import (
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER_SIZE,
    PREFIX_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    seal_header,
)
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import open_batch
from trionet.protocol.records._typed_compaction import OffsetMap, Selection, move_timestamps
from trionet.protocol.records.compression._codecs import compress

_TIMESTAMP_TYPE: Final = 0x08
#: What an empty batch keeps: it has no codec, and no delete horizon.
_OF_EMPTY: Final = _TIMESTAMP_TYPE | TRANSACTIONAL | CONTROL
_NO_TIMESTAMP: Final = -1


class KeptRecords(NamedTuple):
    """The records of a batch that compaction keeps."""

    body: bytes
    """A buffer with the decompressed records."""
    selection: Selection


def put_batch(offsets: OffsetMap, buf: bytes, pos: int, inflated_bytes_max: int) -> int:
    """Put the records of the batch at ``pos`` into a map; see :meth:`.OffsetMap.put`.

    Returns:
        The number of records that were read: all of them, unless the map is full.

    Raises:
        WireFormatError: the batch is malformed, or its decompressed size exceeds the limit.
    """
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    try:
        return offsets.put(body, start, end, header.count, header.base_offset)
    except IndexError as error:
        raise_from(WireFormatError("truncated record"), error)


def select_records(
    offsets: OffsetMap, buf: bytes, pos: int, inflated_bytes_max: int, *, keep_tombstones: bool
) -> KeptRecords:
    """Select the records of the batch at ``pos`` that are kept; see :meth:`.OffsetMap.select`.

    Raises:
        WireFormatError: the batch is malformed, or its decompressed size exceeds the limit.
    """
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    try:
        selection = offsets.select(
            body, start, end, header.count, header.base_offset, keep_tombstones
        )
    except IndexError as error:
        raise_from(WireFormatError("truncated record"), error)
    return KeptRecords(body, selection)


def rebuild_batch(
    header: BatchHeader, kept: KeptRecords, delete_horizon: int | None = None
) -> tuple[BatchHeader, list[bytes]]:
    """Encode a batch with the records that are kept, at least one.

    Args:
        header: the header of the batch so far.
        kept: its records.
        delete_horizon: the delete horizon that the batch gets, in milliseconds; None for the one
            that it has, if any.

    Returns:
        The header, and the chunks of the batch.

    Raises:
        WireFormatError: the timestamps of the records cannot be expressed.
    """
    body, (ranges, count, _, _, newest_delta) = kept
    base_timestamp, attributes = header.base_timestamp, header.attributes
    newest = base_timestamp + newest_delta
    if not -(2**63) <= newest < 2**63:
        raise WireFormatError("the timestamp of a record does not fit into 64 bits")
    if delete_horizon is None:
        slices = [body[ranges[each] : ranges[each + 1]] for each in range(0, len(ranges), 2)]
        records = slices[0] if len(slices) == 1 else b"".join(slices)
    else:
        records = move_timestamps(body, ranges, base_timestamp, delete_horizon)
        base_timestamp = delete_horizon
        attributes |= DELETE_HORIZON
    if header.codec:
        records = compress(header.codec, records)
    header = header._replace(
        length=HEADER_SIZE - PREFIX_SIZE + len(records),
        attributes=attributes,
        base_timestamp=base_timestamp,
        # With LogAppendTime it is the time of every record.
        max_timestamp=header.max_timestamp if header.timestamp_type else newest,
        count=count,
    )
    crc = crc32c(records, crc32c(header.pack()[CRC_START:]))
    header = header._replace(crc=crc)
    return header, [header.pack(), records]


def emptied(header: BatchHeader) -> BatchHeader:
    """Return the header of a batch that has lost its records (DefaultRecordBatch.writeEmptyHeader).

    It still says what the last sequence number of its producer was, and which offsets are taken.
    """
    return seal_header(
        header._replace(
            length=HEADER_SIZE - PREFIX_SIZE,
            attributes=header.attributes & _OF_EMPTY,
            base_timestamp=_NO_TIMESTAMP,
            count=0,
        )
    )
