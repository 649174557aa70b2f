"""Fills the offsets of missing records with empty batches, so that they are never assigned again.

Kafka keeps such empty batches, too, when compaction removes all records of a producer's last batch.
Consumers skip empty batches, scans continue after them, and Kafka's tools can read them.
"""

from __future__ import annotations

from ....protocol.records._batch import CRC_START, HEADER_SIZE, MAGIC, PREFIX_SIZE, BatchHeader
from ....protocol.records._crc32c import crc32c
from ..files._directory import Directory
from ..segments._log_batches import BatchPlace
from ..segments._segment import Segment

# An index has 31 bits for an offset relative to its segment.
_OFFSETS_MAX = 2**31


def fill_gap(
    directory: Directory, first_offset: int, end_offset: int, leader_epoch: int, now_ms: int
) -> list[Segment]:
    """Fill a gap in the offsets with segments of empty batches, usually just one. Blocks.

    When this returns, the contents of the log files are durable; the file names are not.

    Args:
        directory: the partition's directory. A segment that starts at ``first_offset`` is replaced.
        first_offset: the first missing offset.
        end_offset: the offset after the last missing offset.
        leader_epoch: the leader epoch of the batches.
        now_ms: the current time.

    Raises:
        OSError: a file cannot be written.
    """
    segments = []
    while first_offset < end_offset:
        count = min(end_offset - first_offset, _OFFSETS_MAX)
        batch = empty_batch(first_offset, count, leader_epoch)
        for suffix in ("index", "timeindex"):
            directory.remove(f"{first_offset:020d}.{suffix}")
        segment = Segment.create(directory, first_offset, now_ms)
        segment.write([batch], len(batch))
        first_offset += count
        segment.indexes.add(BatchPlace(segment.base_offset, first_offset - 1, 0, len(batch)), -1, 0)
        segment.grow(len(batch), first_offset, now_ms)
        segment.indexes.save()
        segment.file.sync()
        segments.append(segment)
    return segments


def empty_batch(base_offset: int, count: int, leader_epoch: int) -> bytes:
    """Encode an empty batch that covers ``count`` offsets."""
    header = BatchHeader(
        base_offset=base_offset,
        length=HEADER_SIZE - PREFIX_SIZE,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=count - 1,
        base_timestamp=-1,
        max_timestamp=-1,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=0,
    )
    return header._replace(crc=crc32c(header.pack()[CRC_START:])).pack()


def truncate_segment(segment: Segment, end_offset: int, position: int) -> None:
    """Truncate a segment's file to ``position`` bytes, and set its end offset. Blocks.

    Raises:
        OSError: the file cannot be truncated.
    """
    segment.file.truncate(position)
    segment.file.sync()
    segment.size, segment.end_offset = position, end_offset
