"""Taking up the offsets of records that are gone, so that no other records get them.

A batch without records has their offsets: what Kafka keeps of a batch that compaction has emptied.
Consumers pass over it, no scan takes what is behind it for unreachable, and Kafka's tools read it.
"""

from __future__ import annotations

from ....protocol.records._batch import CRC_START, HEADER_SIZE, MAGIC, PREFIX_SIZE, BatchHeader
from ....protocol.records._crc32c import crc32c
from ..files._directory import Directory
from ..segments._segment import Segment
from ..segments._stored_segment import BatchPlace

# An index has 31 bits for an offset within its segment.
_OFFSETS_MAX = 2**31


def fill(
    directory: Directory, first_offset: int, end_offset: int, leader_epoch: int, now_ms: int
) -> list[Segment]:
    """Segments without records; one, unless there are more offsets than one can have. Blocks.

    They are on the disk when this returns, but for their names.

    Args:
        directory: the partition's folder. A segment that begins at ``first_offset`` is replaced.
        first_offset: the first that is gone.
        end_offset: behind the last one.
        leader_epoch: of the batches.
        now_ms: the clock.

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
        segment.note(BatchPlace(segment.base_offset, first_offset - 1, 0, len(batch)), -1, 0)
        segment.grow(len(batch), first_offset, now_ms)
        segment.save_indexes()
        segment.file.sync()
        segments.append(segment)
    return segments


def empty_batch(base_offset: int, count: int, leader_epoch: int) -> bytes:
    """A batch of so many offsets that has no records."""
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


def cut_off(segment: Segment, end_offset: int, position: int) -> None:
    """Take from a segment what lies behind its last whole batch. Blocks.

    Raises:
        OSError: the file cannot be cut.
    """
    segment.file.truncate(position)
    segment.file.sync()
    segment.size, segment.end_offset = position, end_offset
