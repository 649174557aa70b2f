"""What is stored of one segment: finding batches in its log file, by indexes that may be wrong.

An index is derived data, and believed only as far as it goes: where an entry names no batch with
its offset, the indexes are made again from the headers of the batches. The log file itself is left
alone: it was on the disk before the last stop.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import struct
from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import CORRUPT_MESSAGE
from ....protocol.records._batch import HEADER_SIZE, PREFIX_SIZE, read_header
from ..files._directory import Directory, LogFile
from ..files._page_cache import is_page_cached
from ._index import ENTRY_MAX, TIME_ENTRY_SIZE, OffsetIndex, TimeIndex

logger = logging.getLogger("trionet.broker.log")

# One read covers the batches between two index entries, with Kafka's default of 4 KB between them.
SCAN_BYTES = 8192

# Base offset, length, (epoch, magic, CRC, attributes), last offset delta.
_PLACE = struct.Struct(">qi11xi")
# Kafka's default; an index that is made again needs no other.
_INDEX_INTERVAL_BYTES = 4096

_base_offset: Final = itemgetter(0)


class BatchPlace(NamedTuple):
    """Where one batch lies in its segment's file."""

    base_offset: int
    last_offset: int
    position: int
    size: int


def file_name(base_offset: int, suffix: str) -> str:
    """``00000000000000000042.log`` and the like."""
    return f"{base_offset:020d}.{suffix}"


def is_offset(stem: str) -> bool:
    """Whether the name of a file, without its suffix, is an offset."""
    return stem.isascii() and stem.isdigit() and len(stem) <= 20 and int(stem) < 2**63


class StoredSegment:
    """One log file and its indexes, as far as they are read; threads may do so.

    Args:
        directory: the partition's folder.
        base_offset: the smallest offset it can hold; its name.
        created_ms: when it was made (or opened, if that is not known any more).
    """

    __slots__ = (
        "_file",
        "_index",
        "_index_cuts",
        "_index_saved",
        "_is_damage_reported",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_modified_ms",
        "_newest_is_known",
        "_recent",
        "_time_index",
        "base_offset",
        "created_ms",
        "directory",
        "end_offset",
        "size",
    )

    def __init__(self, directory: Directory, base_offset: int, created_ms: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = created_ms
        self._modified_ms = created_ms
        self.end_offset = base_offset
        self.size = 0
        self._newest_is_known = True
        self._is_damage_reported = False
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset
        self._file: LogFile | None = None
        self._index: OffsetIndex | None = None
        # That of a segment which grows; old ones keep none in RAM.
        self._time_index: TimeIndex | None = None
        self._index_saved = 0
        # How often entries were taken back which the index files may hold already.
        self._index_cuts = 0
        self._recent: list[BatchPlace] = []

    def name(self, suffix: str) -> str:
        """The name of one of its files."""
        return file_name(self.base_offset, suffix)

    @property
    def file(self) -> LogFile:
        """The open log file."""
        file = self._file
        if file is None:
            file = self._file = self.directory.open(self.name("log"))
        return file

    @property
    def index(self) -> OffsetIndex:
        """The offset index, read from its file when it is not in RAM (may wait for the disk)."""
        index = self._index
        if index is None:
            try:
                index = OffsetIndex.decode(self.directory.read(self.name("index")), self.size)
            except FileNotFoundError:
                pass
            if index is None or not self._ends_as_indexed(index):
                return self.index_again()[0]
            self._index_saved = len(index)
            self._index = index
        return index

    @property
    def time_index(self) -> TimeIndex:
        """The time index; that of an old segment is read anew each time (may wait for the disk)."""
        index = self._time_index
        if index is None:
            try:
                index = TimeIndex.decode(self.directory.read(self.name("timeindex")))
            except FileNotFoundError:
                pass
            if index is None:
                _, index = self.index_again()
        return index

    def index_again(self) -> tuple[OffsetIndex, TimeIndex]:
        """Make the indexes anew from the batch headers, in RAM and on the disk.

        Nothing is cut: the log file was on the disk before the last stop. What lies behind bytes
        that are no batch cannot be read. Blocks; thread-safe.

        Raises:
            FileNotFoundError: the segment was removed.
        """
        index, time_index, newest, damage = self._indexes_of_batches()
        growing = self._time_index
        if growing is not None:
            # The loop may be adding to it, and a flush saving it: its files follow with the next.
            self._index_cuts += 1
            time_index = growing
        else:
            self.directory.replace(self.name("index"), index.encode())
            self.directory.replace(self.name("timeindex"), time_index.encode())
            self.set_newest(*newest)
            self._index_saved = len(index)
        self._index = index
        logger.warning("%r: the indexes of %s were made again", self.directory, self.name("log"))
        if damage is not None:
            logger.error("%r: records behind cannot be read: %s", self.directory, damage)
        return index, time_index

    def _indexes_of_batches(
        self,
    ) -> tuple[OffsetIndex, TimeIndex, tuple[int, int], Exception | None]:
        """The indexes, the newest timestamp with its offset, and what the batches end with."""
        index, time_index = OffsetIndex(), TimeIndex()
        base_offset, next_offset = self.base_offset, self.base_offset
        newest = (-1, base_offset)
        end = since_entry = 0
        damage: Exception | None = None
        try:
            for place in self.places(0):
                if not next_offset <= place.base_offset <= place.last_offset < self.end_offset:
                    offsets = f"{place.base_offset} to {place.last_offset}"
                    raise WireFormatError(f"offsets {offsets} at byte {place.position}")
                header = read_header(self.file.read_at(place.position, HEADER_SIZE))
                if header.max_timestamp > newest[0]:
                    newest = header.max_timestamp, place.last_offset
                entry = place.last_offset - base_offset
                if since_entry > _INDEX_INTERVAL_BYTES and max(entry, place.position) <= ENTRY_MAX:
                    index.append(entry, place.position)
                    time_index.append_if_newer(newest[0], newest[1] - base_offset)
                    since_entry = 0
                since_entry += place.size
                next_offset, end = place.last_offset + 1, place.position + place.size
        except (ApiError, WireFormatError) as error:
            damage = None if self._ends_at(end, next_offset) else error
        if newest[1] - base_offset <= ENTRY_MAX:
            time_index.append_if_newer(newest[0], newest[1] - base_offset)
        return index, time_index, newest, damage

    def _ends_as_indexed(self, index: OffsetIndex) -> bool:
        """Whether the newest entry of an old segment's index names a batch."""
        entry, position = index.last()
        if position and not self._is_indexed(entry, position):
            return False
        end, next_offset = position, self.base_offset
        try:
            for place in self.places(position):
                if place.last_offset >= self.end_offset:
                    break
                end, next_offset = place.position + place.size, place.last_offset + 1
        except ApiError:
            pass  # whoever reads there is told
        self._ends_at(end, next_offset)
        return True

    def _ends_at(self, end: int, next_offset: int) -> bool:
        """Leave out what lies behind the last batch of an old segment; False: it is not the last.

        An append that failed may have left bytes there, and even whole batches. Those of the
        segment have offsets below those of the next one.
        """
        if next_offset != self.end_offset or self._time_index is not None:
            return False
        if end < self.size:
            logger.warning(
                "%r: %d bytes behind the last record of %s, from byte %d on, are not served",
                self.directory,
                self.size - end,
                self.name("log"),
                end,
            )
            self.size = end
        return True

    def _is_indexed(self, entry: int, position: int) -> bool:
        """Whether a batch with the last offset of an index entry starts at its position."""
        head = self.file.read_at(position, _PLACE.size)
        if len(head) < _PLACE.size:
            return False
        base_offset, length, last_delta = _PLACE.unpack(head)
        last_offset: int = base_offset + last_delta
        return last_offset == self.base_offset + entry and length >= HEADER_SIZE - PREFIX_SIZE

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of its records, -1 without any (may wait for the disk)."""
        if not self._newest_is_known:
            self._learn_newest()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the batch that has it (may wait for the disk)."""
        if not self._newest_is_known:
            self._learn_newest()
        return self._max_timestamp_offset

    def set_newest(self, timestamp: int, offset: int) -> None:
        """Take what was found to be the greatest timestamp."""
        # In this order: a thread may look at them meanwhile.
        self._max_timestamp_offset = offset
        self._max_timestamp = timestamp
        self._newest_is_known = True

    def _learn_newest(self) -> None:
        """Read the end of the time index; if it cannot be right, make the indexes again."""
        # Two entries, because one says nothing: zeros, which a crash can leave behind the entries,
        # are a possible entry but not one that rises.
        name = self.name("timeindex")
        times = None
        try:
            size = self.directory.size(name)
            if not size % TIME_ENTRY_SIZE:
                start = max(0, size - 2 * TIME_ENTRY_SIZE)
                times = TimeIndex.decode(self.directory.read(name, start))
        except FileNotFoundError:
            pass
        if times is None:
            self.index_again()
        else:
            timestamp, offset = times.last()
            self.set_newest(timestamp, self.base_offset + offset)

    @property
    def modified_ms(self) -> int:
        """When its file was last written, in milliseconds (may wait for the disk)."""
        modified_ms = self._modified_ms
        if modified_ms < 0:
            found = self.directory.modified_ms(self.name("log"))
            modified_ms = self._modified_ms = self.created_ms if found is None else found
        return modified_ms

    @property
    def newest_is_at_hand(self) -> bool:
        """Whether :attr:`newest_ms` would be told without waiting for the disk."""
        return self._newest_is_known and self._modified_ms >= 0

    @property
    def is_loaded(self) -> bool:
        """File and offset index are at hand: looking something up opens no file."""
        return self._file is not None and self._index is not None

    @property
    def newest_ms(self) -> int:
        """The age of the segment for retention: its newest timestamp, else its last change."""
        newest = self.max_timestamp
        return newest if newest >= 0 else self.modified_ms

    def let_go(self) -> None:
        """Hold the file no longer; whoever sends a range of it still does."""
        self._file = None

    # Looking up

    def locate(self, offset: int) -> BatchPlace | None:
        """The first batch that ends at or after ``offset``; None when there is none here.

        Thread-safe. May wait for the disk unless :meth:`can_locate_now`.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes found are no batch.
        """
        place = self._locate_recent(offset)
        if place is not None:
            return place
        try:
            for place in self.places_from(offset):
                if place.last_offset >= offset:
                    self._check_place(place)
                    return place
        except ApiError as error:
            if not self._is_damage_reported:
                self._is_damage_reported = True
                text = "%r: readers get CORRUPT_MESSAGE: %s"
                logger.error(text, self.directory, error)  # noqa: TRY400
            raise
        return None

    def _check_place(self, place: BatchPlace) -> None:
        """Refuse a batch that lies behind the end of its segment: no CRC covers its offset.

        Raises:
            ApiError: CORRUPT_MESSAGE.
        """
        if place.last_offset >= self.end_offset:
            raise ApiError(
                CORRUPT_MESSAGE,
                f"{self.name('log')}: the batch at byte {place.position} has the offsets"
                f" {place.base_offset} to {place.last_offset}, where {self.end_offset} is the end",
            )

    def can_locate_now(self, offset: int) -> bool:
        """Whether :meth:`locate` would answer without waiting for the disk."""
        if self._locate_recent(offset) is not None:
            return self._file is not None
        if not self.is_loaded:
            return False
        position = self.index.floor(offset - self.base_offset)[1]
        end = min(position + SCAN_BYTES, self.size) - 1
        return is_page_cached(self.file, position) and is_page_cached(self.file, max(end, 0))

    def _locate_recent(self, offset: int) -> BatchPlace | None:
        recent = self._recent
        found = bisect_right(recent, offset, key=_base_offset) - 1
        if 0 <= found < len(recent):
            place = recent[found]
            # The list may have been shortened between the search and now: what was found says
            # itself whether it is the right one.
            if place.base_offset <= offset <= place.last_offset:
                return place
        return None

    def places_from(self, offset: int) -> Iterator[BatchPlace]:
        """The batches from that of ``offset`` on, or from one that is not far before it.

        Thread-safe; may wait for the disk.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes found are no batch.
        """
        entry, position = self.index.floor(offset - self.base_offset)
        if position and not self._is_indexed(entry, position):
            position = self.index_again()[0].floor(offset - self.base_offset)[1]
        return self.places(position)

    def places(self, position: int) -> Iterator[BatchPlace]:
        """The batches from ``position``, where one starts, to the end; reads headers only.

        Thread-safe; may wait for the disk.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes found are no batch.
        """
        file, limit = self.file, self.size
        while position < limit:
            chunk = file.read_at(position, min(SCAN_BYTES, limit - position))
            at, last_start = 0, len(chunk) - _PLACE.size
            while at <= last_start:
                base_offset, length, last_delta = _PLACE.unpack_from(chunk, at)
                size = length + PREFIX_SIZE
                if size < HEADER_SIZE or last_delta < 0:
                    break
                yield BatchPlace(base_offset, base_offset + last_delta, position + at, size)
                at += size
            if not at:
                raise ApiError(
                    CORRUPT_MESSAGE, f"{self.name('log')}: no record batch at byte {position}"
                )
            position += at
