"""Detects and reports missing records that had been on disk, and fills their offsets.

The problem: a segment below the recovery point was removed, or its file was truncated. Kafka does
not detect this; the broker would continue with wrong offsets or without the records.

The choice: compare the sizes of the segments with the extent that the last run saved, which costs
one addition per segment at a normal startup. The end of each segment is read to find the gap only
if there is less or the extent is unknown. (There is more if a crash has kept compaction from making
a log smaller.) Empty batches take the offsets of missing records, so
that these are never assigned again. Kafka keeps such batches, too, when compaction removes all
records of a producer's last batch. Consumers skip empty batches, scans continue after them, and
Kafka's tools can read them.

Rejected: checksums of whole files, because every startup would have to read all data.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from ...._util._logging import get_logger
from ....errors import ApiError, TrionetError
from ....protocol.records._batch import HEADER_SIZE, empty_batch
from ..files._checkpoint_files import Extent
from ..files._directory import Directory
from ..segments._log_batches import BatchPlace, file_name
from ..segments._segment import Segment

logger = get_logger("trionet.broker.log")

# An index has 31 bits for an offset relative to its segment.
_OFFSETS_MAX = 2**31


class MissingRecordsError(TrionetError):
    """Raised when records that had been on disk are missing and the settings do not allow that."""


class Gap(NamedTuple):
    """A range of missing offsets between two consecutive segments."""

    before: Segment
    first_offset: int
    end_offset: int
    position: int
    """The position after the last batch of ``before`` in its file."""


class MissingRecords:
    """Counts and logs the records that are missing from one partition.

    Args:
        name: the partition's name, for use in messages.
        extent: the part of the log that had been on disk; None if unknown.
        allowed: whether the log may be opened with missing records.

    Attributes:
        extent: the extent that was passed in.
        count: the number of missing records.
        filled: the size, in bytes, of the empty batches that replace missing records.
    """

    def __init__(self, name: str, extent: Extent | None, *, allowed: bool) -> None:
        self.extent = extent
        self.count = 0
        self.filled = 0
        self._name = name
        self._allowed = allowed
        self._bytes = 0
        self._cuts: dict[int, tuple[int, str]] = {}

    def note(
        self, first_offset: int, end_offset: int, size: int | None, where: str, then: str
    ) -> None:
        """Report that the records from ``first_offset`` to before ``end_offset`` are missing.

        Args:
            first_offset: the first missing offset.
            end_offset: the offset after the last missing offset.
            size: the size of the records in bytes; None if unknown.
            where: the location of the loss and the evidence for it.
            then: the consequence, reported if the log may be opened.
        """
        count = end_offset - first_offset
        self.count += count
        self._bytes += size or 0
        logger.error(
            "%s: %d record%s missing, offset%s%s: %s%s",
            self._name,
            count,
            " is" if count == 1 else "s are",
            f" {first_offset}" if count == 1 else f"s {first_offset} to {end_offset - 1}",
            "" if size is None else f", {size} bytes",
            where,
            f"; {then}" if self._allowed else "",
        )

    def note_never_durable(self, first_offset: int, first: Segment) -> None:
        """Report missing records before the ``first`` segment that may never have been on disk."""
        logger.warning(
            "%s: %d records are missing, offsets %d to %d: the first segment is %s; the records"
            " were not known to be on disk",
            self._name,
            first.base_offset - first_offset,
            first_offset,
            first.base_offset - 1,
            first.name("log"),
        )

    def note_bytes(self, size: int, where: str | None = None) -> None:
        """Count missing bytes, and log them if ``where`` is given, which says where they were."""
        self._bytes += size
        if where is not None:
            logger.error("%s: %d bytes are missing: %s", self._name, size, where)

    def note_cut(self, segment: Segment, size: int, damage: str) -> None:
        """Record damage after the valid batches of a segment, whose file has ``size`` bytes."""
        self._cuts[segment.base_offset] = size - segment.size, damage

    def note_end(self, found: list[Segment], end_offset: int, then: str) -> None:
        """Report that records from the end of the last segment to ``end_offset`` are missing."""
        last = found[-1]
        name = last.name("log")
        lost, damage = self._cuts.get(last.base_offset, (0, None))
        size = self._bytes_lacking(sum(each.size for each in found))
        if damage is not None:
            where = f"{name}, byte {last.size}: {damage}"
            size = max(size or 0, lost)
        elif self.extent is not None and last.base_offset < self.extent.base_offset:
            where = f"{file_name(self.extent.base_offset, 'log')} is missing"
        else:
            where = f"{name} ends at byte {last.size}"
        self.note(last.end_offset, end_offset, size, where, then)

    def check(self) -> None:
        """Check that the reported losses are allowed; call this before changing any file.

        Raises:
            MissingRecordsError: records are missing, which is not allowed.
        """
        if self.count and not self._allowed:
            raise MissingRecordsError(f"{self.count} records of {self._name} are missing")

    def _bytes_lacking(self, found: int) -> int | None:
        """Return the number of missing bytes that have not been reported; None if unknown.

        Args:
            found: the number of bytes that were found.
        """
        if self.extent is None:
            return None
        return max(0, self.extent.size - (found - self.filled) - self._bytes)


def find_gaps(
    segments: list[Segment], trusted_up_to: int, losses: MissingRecords, cleaned_to: int
) -> list[Gap]:
    """Find and report records missing at the start of a log and between its segments. Blocks.

    If the segments have the size of the extent, or more, this reads no file. If they have less, or
    the extent is unknown, it reads the end of each segment. It does not change any file.

    Args:
        segments: all segments, ascending.
        trusted_up_to: the offset at which to stop; later segments will be scanned.
        losses: collects the missing records.
        cleaned_to: the offset below which compaction may have left gaps. Only Kafka's leaves them
            between segments, so that they count as missing records if bytes are missing, too.

    Returns:
        The gaps to fill.

    Raises:
        OSError: a file cannot be read.
    """
    extent = losses.extent
    if extent is None:
        return _note_gaps(_gaps(segments, trusted_up_to, cleaned_to), None, losses)
    first = segments[0]
    is_late = first.base_offset > extent.start_offset
    if is_late and extent.start_offset >= extent.end_offset:
        # Everything that is known to have been on disk was deleted.
        losses.note_never_durable(extent.start_offset, first)
        return []
    # The segment that contains the recovery point is checked later; one that ends there, here.
    is_whole = any(each.base_offset == extent.end_offset for each in segments)
    limit = extent.end_offset if is_whole else extent.base_offset
    covers = is_whole or first.base_offset > extent.base_offset
    expected = extent.size if covers else extent.bytes_before
    found = sum(each.size for each in segments if each.base_offset < limit)
    gaps = _gaps(segments, trusted_up_to) if is_late or found < expected else []
    lacking = max(0, expected - found)
    alone = lacking if is_late + len(gaps) == 1 else None
    if is_late:
        where = f"the first segment is {first.name('log')}"
        then = f"the log starts at offset {first.base_offset}"
        losses.note(extent.start_offset, first.base_offset, alone, where, then)
    noted = _note_gaps(gaps, alone, losses)
    if lacking and alone is None:
        where = f"the segments before offset {limit} have {found} bytes"
        losses.note_bytes(lacking, None if is_late or gaps else where)
    return noted


def _note_gaps(gaps: list[Gap], size: int | None, losses: MissingRecords) -> list[Gap]:
    for segment, first_offset, end_offset, position in gaps:
        losses.note(
            first_offset,
            end_offset,
            None if size is None else size + segment.size - position,
            f"{segment.name('log')} ends at byte {position}, and the next segment is"
            f" {file_name(end_offset, 'log')}",
            "consumers skip them",
        )
    return gaps


def _gaps(segments: list[Segment], trusted_up_to: int, cleaned_to: int = 0) -> list[Gap]:
    gaps = []
    for segment, following in pairwise(segments):
        if following.base_offset > trusted_up_to:
            break
        if following.base_offset <= cleaned_to:
            continue
        end = read_end(segment)
        if end is not None and end[0] < following.base_offset:
            gaps.append(Gap(segment, end[0], following.base_offset, end[1]))
        segment.release()
    return gaps


def read_end(segment: Segment) -> tuple[int, int] | None:
    """Return the offset and position after the last complete batch; None if a batch is damaged.

    Reads the batch headers, starting at the last index entry. Blocks.
    """
    index = segment.indexes.read_offsets(segment.size)
    starts = {0 if index is None else index.last()[1], 0}
    for start in sorted(starts, reverse=True):
        end = segment.base_offset, start
        try:
            for place in segment.places(start):
                if place.position + place.size > segment.size:
                    break
                end = place.last_offset + 1, place.position + place.size
        except ApiError:
            if segment.size - end[1] >= HEADER_SIZE:
                end = segment.base_offset, start
                continue
        if end[1] > start or not start:
            return end
    return None


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
        batch = empty_batch(first_offset, count, leader_epoch).pack()
        for suffix in ("index", "timeindex", "txnindex"):
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


def truncate_segment(segment: Segment, end_offset: int, position: int) -> None:
    """Truncate a segment's file to ``position`` bytes, and set its end offset. Blocks.

    Raises:
        OSError: the file cannot be truncated.
    """
    segment.file.truncate(position)
    segment.file.sync()
    segment.size, segment.end_offset = position, end_offset
