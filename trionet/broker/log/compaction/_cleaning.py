"""One cleaning of one log, from open files to open files (Kafka: Cleaner).

Pass 1 notes the last offset of each key in the dirty part of the log. Pass 2 copies the log from
its start, without the records that have a later one with their key. The caller decides which
segments are read and where the results go, one segment at a time, so that this runs as well in a
process that gets one descriptor after the other.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...._util._raising import raise_from
from ...._util.files._log_file import LogFile
from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import CORRUPT_MESSAGE
from ....protocol.records._batch import HEADER_SIZE, MAGIC, BatchHeader, iter_batches, read_header
from ....protocol.records._compaction import put_batch
from ....protocol.records._records import INFLATED_BYTES_MAX
from ....protocol.records._typed_compaction import OffsetMap
from ..segments._aborted_transactions import AbortedTransaction
from ..segments._cleaned_file import CleanedFile
from ..segments._log_batches import file_name
from ._cleaned_file import CleanedFileWriter
from ._cleaned_transactions import CleanedTransactions
from ._retention import RecordFilter, verify_checksum


class CleaningInput(NamedTuple):
    """What a cleaning needs to know about its log; can be pickled."""

    first_dirty_offset: int
    """The first offset that no cleaning has seen, at which pass 1 starts."""
    end_offset: int
    """The offset after the last one that may be cleaned (Kafka: firstUncleanableOffset)."""
    keys_max: int
    """The number of keys with which the map is full; the round ends there."""
    delete_retention_ms: int
    """The value of ``delete.retention.ms``."""
    now_ms: int
    """The time of the round."""
    aborted: list[AbortedTransaction]
    """The aborted transactions with records below ``end_offset``, even if their markers are not."""
    last_records: dict[int, tuple[int, int]]
    """The last data offset, or -1, and the epoch of each producer that is active."""
    index_interval_bytes: int
    """The value of ``index.interval.bytes``."""
    read_bytes: int
    """A segment is read in chunks of this size, or of one batch if that is larger."""
    inflated_bytes_max: int = INFLATED_BYTES_MAX
    """The limit on the decompressed size of a batch, in bytes."""


class CleaningStatistics(NamedTuple):
    """What a cleaning has read and written (Kafka: CleanerStats)."""

    map_bytes_read: int = 0
    map_messages_read: int = 0
    map_utilization: float = 0.0
    """The share of the map that was in use, from 0 to 1."""
    bytes_read: int = 0
    messages_read: int = 0
    invalid_messages: int = 0
    """The number of records that were removed because they have no key."""
    bytes_written: int = 0
    messages_written: int = 0


def _ignore(size: int) -> None:
    """Do nothing about bytes that were read or written."""


class Cleaning:
    """A cleaning. Blocks on the disk.

    First :meth:`map_segment` for each dirty segment, until it says that the map is full. Then for
    each group of segments, from the start of the log: :meth:`start_group`, :meth:`clean_segment`
    for each, :meth:`finish_group`.

    All methods raise:

    * ApiError: CORRUPT_MESSAGE if a batch is damaged, with its place.
    * OSError: a file could not be read or written.

    Args:
        input: the facts about the log.
        on_io: called with the number of bytes before they are read or written; may wait, to limit
            their rate, or raise to abandon the cleaning (Kafka: Throttler, checkDone).

    Attributes:
        end_offset: the offset after the last one that pass 1 has covered, where the round ends; 0
            before the first.
    """

    def __init__(self, input: CleaningInput, on_io: Callable[[int], None] = _ignore) -> None:
        self._input = input
        self._on_io = on_io
        self._map = OffsetMap(input.keys_max, input.first_dirty_offset)
        self._is_map_complete = False
        self._mapped_transactions = CleanedTransactions(input.aborted)
        self._transactions = CleanedTransactions(input.aborted)
        self._filter = RecordFilter(
            self._map,
            self._transactions,
            input.last_records,
            end_offset=input.end_offset,
            delete_retention_ms=input.delete_retention_ms,
            now_ms=input.now_ms,
            inflated_bytes_max=input.inflated_bytes_max,
        )
        self._writer: CleanedFileWriter | None = None
        self._position = 0
        self._leader_epoch = 0
        self._map_bytes_read = self._map_messages_read = 0
        self._bytes_read = 0
        self._bytes_written = self._messages_written = 0

    @property
    def end_offset(self) -> int:
        return self._map.latest_offset + 1

    @property
    def statistics(self) -> CleaningStatistics:
        """What was read and written so far."""
        return CleaningStatistics(
            self._map_bytes_read,
            self._map_messages_read,
            self._map.utilization,
            self._bytes_read,
            self._filter.messages_read,
            self._filter.invalid_messages,
            self._bytes_written,
            self._messages_written,
        )

    def map_segment(self, file: LogFile, size: int, position: int, next_base_offset: int) -> bool:
        """Note the keys of a segment (Kafka: Cleaner.buildOffsetMapForSegment).

        Args:
            file: the log file.
            size: the size of its batches, in bytes.
            position: the position of a batch at or before the first dirty offset.
            next_base_offset: the base offset of the segment that follows.

        Returns:
            Whether the map is full, so that no further segment can be mapped.
        """
        try:
            for chunk, pos, header in self._batches(file, size, position, next_base_offset):
                verify_checksum(chunk, pos, header)
                if header.is_control:
                    self._mapped_transactions.is_obsolete(chunk, pos, header)
                    self._map_messages_read += 1
                elif self._mapped_transactions.is_aborted(header):
                    self._map_messages_read += header.count
                elif header.count:
                    count = put_batch(self._map, chunk, pos, self._input.inflated_bytes_max)
                    self._map_messages_read += count
                    if count < header.count:
                        return True
                self._map.cover(header.last_offset)
                self._map_bytes_read += header.size
        except WireFormatError as error:
            raise_from(self._damage(error, next_base_offset), error)
        # Offsets that earlier cleanings have left without a batch are covered, too.
        self._map.cover(next_base_offset - 1)
        return False

    def start_group(self, base_offset: int, destination: LogFile) -> None:
        """Start to write a cleaned segment.

        Args:
            base_offset: the base offset of the first segment of the group.
            destination: the empty log file.
        """
        if not self._is_map_complete:
            self._is_map_complete = True
            self._map.complete()
        interval = self._input.index_interval_bytes
        self._writer = CleanedFileWriter(destination, base_offset, interval, self._on_io)

    def clean_segment(self, file: LogFile, size: int, base_offset: int, end_offset: int) -> None:
        """Append what stays of a segment to the cleaned one (Kafka: Cleaner.cleanInto).

        Args:
            file: the log file.
            size: the size of its batches, in bytes.
            base_offset: the base offset of the segment.
            end_offset: the base offset of the segment that follows.
        """
        writer = self._writer
        assert writer is not None
        try:
            for chunk, pos, header in self._batches(file, size, 0, end_offset, base_offset):
                self._bytes_read += header.size
                self._leader_epoch = header.leader_epoch
                retained = self._filter.filter(chunk, pos, header)
                if retained is None:
                    continue
                if retained.chunks is None:
                    writer.copy(header, chunk, pos)
                else:
                    writer.append(retained.header, retained.chunks)
                self._messages_written += retained.kept_count
                self._bytes_written += retained.header.size
        except WireFormatError as error:
            raise_from(self._damage(error, end_offset), error)

    def finish_group(self, end_offset: int) -> CleanedFile:
        """Complete and sync the cleaned segment.

        Args:
            end_offset: the base offset of the segment that follows the group.
        """
        writer = self._writer
        assert writer is not None
        self._writer = None
        aborted = self._transactions.retained
        self._transactions.retained = []
        return writer.finish(end_offset, self._leader_epoch, aborted)

    def _batches(
        self, file: LogFile, size: int, position: int, end_offset: int, next_offset: int = 0
    ) -> Iterator[tuple[bytes, int, BatchHeader]]:
        """Yield a buffer, the position of a batch there, and its header, for each batch.

        Raises:
            WireFormatError: the file ends too early, or a batch is damaged.
        """
        wanted = at_least = max(self._input.read_bytes, HEADER_SIZE)
        while position < size:
            self._position = position
            count = min(wanted, size - position)
            self._on_io(count)
            chunk = file.read_at(position, count)
            if len(chunk) < count:
                raise WireFormatError(f"the file ends at byte {position + len(chunk)}")
            end = 0
            for pos, header in iter_batches(chunk):
                self._position = position + pos
                if header.magic != MAGIC:
                    raise WireFormatError(
                        f"unsupported batch format: magic {header.magic}, expected {MAGIC}"
                    )
                if not next_offset <= header.base_offset <= header.last_offset < end_offset:
                    found = f"{header.base_offset} to {header.last_offset}"
                    raise WireFormatError(f"unexpected offsets {found}")
                yield chunk, pos, header
                next_offset = header.last_offset + 1
                end = pos + header.size
            if end:
                position += end
                wanted = at_least
            else:  # not one batch is complete
                wanted = read_header(chunk).size
                if wanted > size - position:
                    raise WireFormatError(f"{size - position} bytes are left for {wanted}")

    def _damage(self, error: WireFormatError, end_offset: int) -> ApiError:
        where = f"the segment before {file_name(end_offset, 'log')}, byte {self._position}"
        return ApiError(CORRUPT_MESSAGE, f"{where}: {error}")
