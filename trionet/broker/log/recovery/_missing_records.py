"""What is missing of a log that had been on the disk: counted and reported.

Offsets whose records are gone are never given again: see :mod:`._empty_batches`.
"""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import NamedTuple

from ....errors import ApiError, TrionetError
from ....protocol.records._batch import HEADER_SIZE
from ..files._extents import Extent
from ..segments._index import OffsetIndex
from ..segments._segment import Segment
from ..segments._stored_segment import file_name

logger = logging.getLogger("trionet.broker.log")


class MissingRecordsError(TrionetError):
    """Records that had been on the disk are gone, and the settings forbid to go on without them."""


class Gap(NamedTuple):
    """Offsets between two segments that neither holds."""

    before: Segment
    first_offset: int
    end_offset: int
    position: int
    """Where the batches of ``before`` end in its file."""


class Losses:
    """What is missing of one log.

    Args:
        name: of the partition, for messages.
        extent: what had been on the disk; None: that is not known.
        allowed: whether the log may be opened all the same.

    Attributes:
        extent: as given.
        count: how many records are missing.
        filled: the bytes of the batches that have taken their offsets.
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
        """Report that the records from ``first_offset`` to before ``end_offset`` are gone.

        Args:
            first_offset: the first one that is gone.
            end_offset: behind the last one.
            size: their bytes; None if nobody knows.
            where: in which file, and how that is seen.
            then: how the log goes on, if it may.
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
        """Report records before the ``first`` segment that a power cut may well have taken."""
        logger.warning(
            "%s: %d records are missing, offsets %d to %d: the first segment is %s; they were not"
            " known to be on the disk",
            self._name,
            first.base_offset - first_offset,
            first_offset,
            first.base_offset - 1,
            first.name("log"),
        )

    def note_bytes(self, size: int, where: str | None = None) -> None:
        """So many bytes are missing, in records that were noted before, or in unknown ones."""
        self._bytes += size
        if where is not None:
            logger.error("%s: %d bytes are missing: %s", self._name, size, where)

    def note_cut(self, segment: Segment, size: int, damage: str) -> None:
        """The batches of a segment, whose file has ``size`` bytes, end at what is ``damage``."""
        self._cuts[segment.base_offset] = size - segment.size, damage

    def note_behind(self, found: list[Segment], end_offset: int, then: str) -> None:
        """Report that what lay between the last segment found and ``end_offset`` is gone."""
        last = found[-1]
        name = last.name("log")
        lost, damage = self._cuts.get(last.base_offset, (0, None))
        size = self._bytes_lacking(sum(each.size for each in found))
        if damage is not None:
            where = f"{name}, byte {last.size}: {damage}"
            size = max(size or 0, lost)
        elif self.extent is not None and last.base_offset < self.extent.base_offset:
            where = f"there is no {file_name(self.extent.base_offset, 'log')}"
        else:
            where = f"{name} ends at byte {last.size}"
        self.note(last.end_offset, end_offset, size, where, then)

    def check(self) -> None:
        """To be called before anything is changed because of a loss.

        Raises:
            MissingRecordsError: nothing may be.
        """
        if self.count and not self._allowed:
            raise MissingRecordsError(f"{self._name} lacks {self.count} records")

    def _bytes_lacking(self, found: int) -> int | None:
        """How many bytes of what had been on the disk are neither found nor noted; None: unknown.

        Args:
            found: the bytes that are there.
        """
        if self.extent is None:
            return None
        return max(0, self.extent.size - (found - self.filled) - self._bytes)


def find_gaps(
    segments: list[Segment], trusted_up_to: int, losses: Losses, *, may_have_gaps: bool
) -> list[Gap]:
    """Report what is missing at the front of a log and between its segments. Blocks; reads only.

    Where nothing is missing it adds up sizes that are known. Where these are wrong, or there is
    nothing to compare them with, the end of each segment is read.

    Args:
        segments: all of them, ascending.
        trusted_up_to: those that begin behind this offset are scanned anyway.
        losses: told of each loss.
        may_have_gaps: as compaction leaves them.

    Returns:
        What has to be filled.

    Raises:
        OSError: a file cannot be read.
    """
    extent = losses.extent
    if extent is None:
        return [] if may_have_gaps else _note_gaps(_gaps(segments, trusted_up_to), None, losses)
    first = segments[0]
    is_late = first.base_offset > extent.start_offset
    if is_late and extent.start_offset >= extent.end_offset:
        # What is known to have been on the disk was deleted.
        losses.note_never_durable(extent.start_offset, first)
        return []
    # The segment of the recovery point is looked at later, unless that is just its end.
    is_whole = any(each.base_offset == extent.end_offset for each in segments)
    limit = extent.end_offset if is_whole else extent.base_offset
    covers = is_whole or first.base_offset > extent.base_offset
    expected = extent.size if covers else extent.bytes_before
    found = sum(each.size for each in segments if each.base_offset < limit)
    gaps = _gaps(segments, trusted_up_to) if is_late or found != expected else []
    lacking = max(0, expected - found)
    alone = lacking if is_late + len(gaps) == 1 else None
    if is_late:
        where = f"the first segment is {first.name('log')}"
        then = f"the log starts at offset {first.base_offset}"
        losses.note(extent.start_offset, first.base_offset, alone, where, then)
    noted = _note_gaps(gaps, alone, losses)
    if lacking and alone is None:
        nowhere = f"the segments before offset {limit} have {found} bytes"
        losses.note_bytes(lacking, None if is_late or gaps else nowhere)
    return noted


def _note_gaps(gaps: list[Gap], size: int | None, losses: Losses) -> list[Gap]:
    for segment, first_offset, end_offset, position in gaps:
        losses.note(
            first_offset,
            end_offset,
            None if size is None else size + segment.size - position,
            f"{segment.name('log')} ends at byte {position}, and the next segment is"
            f" {file_name(end_offset, 'log')}",
            "consumers pass over them",
        )
    return gaps


def _gaps(segments: list[Segment], trusted_up_to: int) -> list[Gap]:
    gaps = []
    for segment, following in pairwise(segments):
        if following.base_offset > trusted_up_to:
            break
        end = read_end(segment)
        if end is not None and end[0] < following.base_offset:
            gaps.append(Gap(segment, end[0], following.base_offset, end[1]))
        segment.release()
    return gaps


def read_end(segment: Segment) -> tuple[int, int] | None:
    """The offset and the position behind the last whole batch; None: the batches are damaged.

    Reads the headers from the last index entry on. Blocks.
    """
    try:
        index = OffsetIndex.decode(segment.directory.read(segment.name("index")), segment.size)
    except FileNotFoundError:
        index = None
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
