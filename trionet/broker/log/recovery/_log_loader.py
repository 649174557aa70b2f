"""Opens a partition's directory and recovers its log after a crash (Kafka: LogLoader).

The problem: after a crash, bytes that were never synced may be missing, torn or zeroed. A log that
skipped offsets, or assigned an offset to two records, would mislead its consumers. The choices:

* After a clean shutdown, all files are trusted, and only the ends of the newest files are read.
* After an unclean shutdown, every segment from the recovery point onward is scanned batch by batch.
  The scan can start there because the recovery point never passes records that have not been
  synced. The log is truncated at the first invalid batch, because no offset may be skipped.
* Records missing below the recovery point were lost for another reason. They are reported. Their
  offsets are filled with empty batches, so that they are never assigned again, and the records
  after them are kept (see :mod:`._missing_records`). Rejected: truncating the log there, as Kafka
  does if it detects the loss, because that deletes intact, acknowledged records.
* Indexes are derived data. An index that does not match its log file is rebuilt from the batch
  headers when it is first needed. After a clean shutdown, the log file is not changed.
* The index of the aborted transactions is rebuilt at once, from headers and markers: without it,
  consumers would get records that were never committed. A missing file is noticed by the number of
  transactions that the last run saved.
* Gaps between offsets are damage, except where compaction may have left them: up to the offset that
  the last run saved. The topic's present policy says nothing about that; it only counts if no such
  offset can be known.

Reconsider when partitions have replicas: a follower would truncate its log and fetch the records
from its leader.

All functions block, and are called in a thread. Memory use is bounded by one chunk of a scan plus
the indexes of one segment.
"""

from __future__ import annotations

from bisect import bisect_right

import attrs

from ...._util._logging import get_logger
from ....errors import ApiError, WireFormatError
from ..files._checkpoint_files import Extent
from ..files._directory import Directory
from ..segments import _swap as swap
from ..segments._log_batches import header_at
from ..segments._log_config import LogConfig
from ..segments._segment import Segment
from ..segments._segment_indexes import OffsetIndex
from ..segments._segments import count_aborted, find_segments, remove_segments
from ..state._leader_epochs import LeaderEpochs, assign_next_epoch, epochs_of_batches, stored_epochs
from ..state._open_transactions import OpenTransactions
from ..state._producer_state import (
    ProducerEntry,
    open_transactions_of,
    producers_at,
    remove_expired,
    remove_stray_snapshots,
    replay_segment,
    snapshots_among,
)
from ._missing_records import MissingRecords, fill_gap, find_gaps, truncate_segment
from ._recovery_scan import RecoveryScan, last_offset_max

logger = get_logger("trionet.broker.log")

_OFFSET_MAX = 2**63 - 1


@attrs.frozen(kw_only=True)
class LastShutdown:
    """The state of one log at the last shutdown, according to the data directory's checkpoints."""

    was_clean: bool = False
    recovery_point: int = 0
    start_offset: int = 0
    extent: Extent | None = None
    """The part of the log that had been on disk; None if only the recovery point is known."""
    cleaned_to: int = 0
    """The offset below which compaction may have left gaps between offsets."""
    is_cleaned_to_known: bool = False
    """Whether ``cleaned_to`` is certain even without an extent: the log is newer than the file of
    the extents, which is there. Otherwise a compacted log without one may have gaps anywhere."""
    loss_allowed: bool = True
    """Whether the log may be opened with missing records."""


class LogLoader:
    """Opens the log in a directory, or creates an empty one.

    Args:
        directory: the partition's directory.
        name: the partition's name, for use in messages.
        config: the settings of the topic.
        last_shutdown: how the last run ended.
        now_ms: the current time, for the age of segments and the expiry of producers.

    Attributes:
        start_offset: the log start offset, valid after :meth:`load`, as are the others.
        producers: the state of the idempotent producers.
        transactions: the open transactions.
        coordinator_epoch: the greatest epoch of a transaction coordinator that the producers know;
            -1 if they know none.
        epochs: the leader epochs.
        is_as_closed: whether the files are as a clean shutdown would leave them.
        cleaned_to: the offset below which compaction may have left gaps between offsets.
    """

    def __init__(
        self,
        directory: Directory,
        name: str,
        config: LogConfig,
        last_shutdown: LastShutdown,
        now_ms: int,
    ) -> None:
        self._directory = directory
        self._name = name
        self._config = config
        self._last_shutdown = last_shutdown
        self._now_ms = now_ms
        self._losses = MissingRecords(
            name, last_shutdown.extent, allowed=last_shutdown.loss_allowed
        )
        stored = stored_epochs(directory, name, is_expected=_had_epoch_file(last_shutdown))
        self._had_epochs = stored is not None
        self._was_clean = last_shutdown.was_clean
        self.start_offset = last_shutdown.start_offset
        self.producers: dict[int, ProducerEntry] = {}
        self.transactions = OpenTransactions()
        self.coordinator_epoch = -1
        self.epochs: LeaderEpochs = stored or LeaderEpochs()
        self.is_as_closed = False
        self.cleaned_to: int = last_shutdown.cleaned_to
        is_known = last_shutdown.extent is not None or last_shutdown.is_cleaned_to_known
        if config.may_have_gaps and not is_known:
            self.cleaned_to = _OFFSET_MAX

    def load(self) -> list[Segment]:
        """Return the segments of the log, at least one.

        Raises:
            MissingRecordsError: records are missing, and the log may not be opened without them.
            OSError: the directory cannot be read or written.
        """
        directory = self._directory
        names = swap.recover(directory, self._name, directory.names())
        segments = self._remove_deleted(find_segments(directory, names, self._now_ms))
        snapshots = snapshots_among(names)
        if segments:
            segments = self._find_end(self._fill_gaps(segments), snapshots)
            self.is_as_closed = self._was_clean and not self._losses.count and self._had_epochs
        if not segments:
            segments = self._start_empty()
            end_offset = segments[0].end_offset
            self.producers = producers_at(directory, snapshots, [], end_offset)
            # If a power failure loses the file's name, the next startup creates an empty log at 0.
            self.is_as_closed = not segments[0].base_offset
        # The active segment is never cleaned.
        self.cleaned_to = min(self.cleaned_to, segments[-1].base_offset)
        self.start_offset = max(self.start_offset, segments[0].base_offset)
        self.epochs.remove_below(self.start_offset)
        if not len(self.epochs):
            self.epochs.assign(0, self.start_offset)
        if not self._was_clean:
            snapshots = snapshots_among(directory.names())
        self._complete_aborted(segments)
        remove_stray_snapshots(directory, snapshots, segments)
        self._note_transactions(segments)
        # An idle partition holds no descriptor.
        if directory.is_durable:
            segments[-1].close_file()
        remove_expired(self.producers, self._now_ms, self._config.producer_id_expiration_ms)
        return segments

    def _complete_aborted(self, segments: list[Segment]) -> None:
        """Rebuild the indexes of aborted transactions that are damaged or missing."""
        extent = self._last_shutdown.extent
        doubtful = [each for each in segments if not each.indexes.is_aborted_known]
        if extent is not None:
            lacking = extent.aborted_transactions - count_aborted(segments, extent.end_offset)
            if lacking > 0:
                doubtful = [each for each in segments if each.base_offset < extent.end_offset]
        if not doubtful:
            return
        logger.warning(
            "%s: reading the log for its aborted transactions, because an index of them is damaged"
            " or missing",
            self._name,
        )
        first = segments.index(doubtful[0])
        base_offset = doubtful[0].base_offset
        # Listed anew: those that are damaged have been removed since.
        snapshots = snapshots_among(self._directory.names())
        producers = producers_at(self._directory, snapshots, segments[:first], base_offset)
        transactions = open_transactions_of(producers)
        for segment in segments[first:]:
            offsets = segment.base_offset, segment.end_offset
            segment.indexes.replace_aborted(
                replay_segment(segment, *offsets, producers, transactions)
            )

    def _note_transactions(self, segments: list[Segment]) -> None:
        """Find the open transactions, and where they begin in bytes."""
        bytes_before = 0
        for segment in segments:
            segment.bytes_before = bytes_before
            bytes_before += segment.size
        for entry in self.producers.values():
            self.coordinator_epoch = max(self.coordinator_epoch, entry.coordinator_epoch)
        self.transactions = open_transactions_of(self.producers)
        for producer_id, offset in self.transactions.first_offsets.items():
            self.transactions.place(producer_id, _position_of(segments, offset))
        if self.transactions.first_offsets:
            for segment in segments[:-1]:
                segment.release()

    def _remove_deleted(self, segments: list[Segment]) -> list[Segment]:
        """Remove the segments below the start offset, and return the remaining segments.

        A power failure may have restored segments that were being removed, but without the bytes
        that were not yet on disk. Such segments must not be read.
        """
        start_offset = self._last_shutdown.start_offset
        removed = [each for each in segments[:-1] if each.end_offset <= start_offset]
        remove_segments(self._directory, removed)
        return segments[len(removed) :]

    def _fill_gaps(self, segments: list[Segment]) -> list[Segment]:
        """Fill gaps between the segments with segments of empty batches; return all segments."""
        last_shutdown, losses = self._last_shutdown, self._losses
        trusted_up_to = _OFFSET_MAX if last_shutdown.was_clean else last_shutdown.recovery_point
        gaps = find_gaps(segments, trusted_up_to, losses, self.cleaned_to)
        losses.check()
        for segment, first_offset, end_offset, position in gaps:
            truncate_segment(segment, first_offset, position)
            filling = self._fill(first_offset, end_offset)
            for each in (segment, *filling):
                each.release()
            at = segments.index(segment)
            before = segments[: at + 1] if position else segments[:at]
            segments = [*before, *filling, *segments[at + 1 :]]
        return segments

    def _fill(self, first_offset: int, end_offset: int) -> list[Segment]:
        epoch = max(self.epochs.at(first_offset), 0)
        filling = fill_gap(self._directory, first_offset, end_offset, epoch, self._now_ms)
        self._losses.filled += sum(each.size for each in filling)
        self._directory.sync()
        return filling

    def _find_end(self, segments: list[Segment], snapshots: list[int]) -> list[Segment]:
        """Find the end of the log, and extend a log whose last records are missing.

        Returns:
            The segments of the log; empty if the log ends before its start offset.
        """
        last_shutdown, losses, epochs = self._last_shutdown, self._losses, self.epochs
        extent = last_shutdown.extent
        end_offset_max = _OFFSET_MAX if extent is None else extent.end_offset
        self._was_clean = self._was_clean and find_clean_end(
            segments[-1], end_offset_max, self.cleaned_to
        )
        if not self._was_clean:
            # Where a deletion has moved it to the start offset, even into the middle of a segment,
            # nothing that is left need ever have been on disk.
            is_deleted = last_shutdown.recovery_point <= last_shutdown.start_offset
            scanning = RecoveryScan(
                self._directory,
                self._name,
                self._config,
                0 if is_deleted else last_shutdown.recovery_point,
                self.cleaned_to,
                losses,
                self._now_ms,
            )
            segments, self.producers, epochs = scanning.run(segments, epochs)
        elif not self._had_epochs:
            epochs = epochs_of_batches(segments)
        end_offset = segments[-1].end_offset
        if end_offset < last_shutdown.start_offset:
            self._remove_all(segments)
            return []
        if end_offset < last_shutdown.recovery_point:
            losses.note_end(segments, last_shutdown.recovery_point, self._next)
        losses.check()
        epoch = 0 if extent is None else extent.leader_epoch
        if not self._was_clean or losses.count:
            assign_next_epoch(self._directory, epochs, end_offset, epoch)
        elif epochs.latest < epoch:
            epochs.assign(epoch, end_offset)
        self.epochs = epochs
        if end_offset < last_shutdown.recovery_point:
            segments = self._fill_end(segments)
        if self._was_clean:
            end_offset, may_have_none = segments[-1].end_offset, extent is None
            self.producers = producers_at(
                self._directory, snapshots, segments, end_offset, may_have_none=may_have_none
            )
        return segments

    @property
    def _next(self) -> str:
        return f"the next record gets offset {self._last_shutdown.recovery_point}"

    def _fill_end(self, segments: list[Segment]) -> list[Segment]:
        """Extend the log to its previous end offset with empty batches; return all segments."""
        last = segments[-1]
        truncate_segment(last, last.end_offset, last.size)
        last.indexes.finish()
        last.indexes.save()
        filling = self._fill(last.end_offset, self._last_shutdown.recovery_point)
        for each in (last, *filling[:-1]):
            each.release()
        return [*(segments if last.size else segments[:-1]), *filling]

    def _remove_all(self, segments: list[Segment]) -> None:
        """Remove all segments of a log that ends before its start offset."""
        last_shutdown, end_offset = self._last_shutdown, segments[-1].end_offset
        logger.warning(
            "%s: the log ends at %d, before its start offset %d; restarting it at the start offset",
            self._name,
            end_offset,
            last_shutdown.start_offset,
        )
        self._note_all_missing(f"{segments[-1].name('log')} ends at offset {end_offset}")
        remove_segments(self._directory, segments[::-1])

    def _note_all_missing(self, where: str) -> None:
        last_shutdown = self._last_shutdown
        if last_shutdown.start_offset < last_shutdown.recovery_point and not self._losses.count:
            size = None if last_shutdown.extent is None else last_shutdown.extent.size
            self._losses.note(
                last_shutdown.start_offset, last_shutdown.recovery_point, size, where, self._next
            )
        self._losses.check()

    def _start_empty(self) -> list[Segment]:
        """Create an empty log that starts at the end offset of the previous log."""
        last_shutdown, extent = self._last_shutdown, self._last_shutdown.extent
        self._note_all_missing("the directory contains no segments")
        start_offset = max(last_shutdown.start_offset, last_shutdown.recovery_point)
        segments = [Segment.create(self._directory, start_offset, self._now_ms)]
        epoch = 0 if extent is None else extent.leader_epoch
        if self._losses.count or (extent is not None and max(start_offset, epoch)):
            assign_next_epoch(self._directory, self.epochs, start_offset, epoch)
        return segments


def _position_of(segments: list[Segment], offset: int) -> int:
    """Return where the batch with an offset begins, in bytes from the start of the log."""
    number = max(bisect_right(segments, offset, key=lambda each: each.base_offset) - 1, 0)
    segment = segments[number]
    try:
        place = segment.locate(offset)
    except ApiError:
        place = None  # damaged, or missing and filled
    return segment.bytes_before + (0 if place is None else place.position)


def _had_epoch_file(last_shutdown: LastShutdown) -> bool:
    """Return whether the leader epoch file should exist; an empty log in epoch 0 has none."""
    extent = last_shutdown.extent
    return extent is not None and bool(
        extent.leader_epoch or (last_shutdown.was_clean and extent.size > 0)
    )


def find_clean_end(segment: Segment, end_offset_max: int, cleaned_to: int) -> bool:
    """Find the end of the newest segment after a clean shutdown.

    Reads the indexes, and the log file starting at the last index entry. Blocks. Returns False if
    the segment must be scanned instead.

    Args:
        segment: the newest segment, whose end offset is unknown.
        end_offset_max: the greatest possible end offset.
        cleaned_to: the offset below which compaction may have left gaps.
    """
    if not segment.size:
        # A log that was never written to has no index files.
        segment.indexes.drop()
        return True
    try:
        index, times = segment.indexes.read_offsets(segment.size), segment.indexes.read_times()
        if index is None or times is None:
            return False
        segment.indexes.resume(index, times, segment.size)
        if not _find_end(segment, index, cleaned_to) or segment.end_offset > end_offset_max:
            return False
        segment.indexes.first_timestamp = header_at(segment.file, 0).max_timestamp
    except (ApiError, WireFormatError, FileNotFoundError):
        return False
    return True


def _find_end(segment: Segment, index: OffsetIndex, cleaned_to: int) -> bool:
    """Follow the batches from the last index entry to the file's end; return False if damaged."""
    base_offset = segment.base_offset
    entry, position = index.last()
    # An index entry holds the last offset of its batch, not the first.
    following = None if position else base_offset
    for place in segment.places(position):
        if following is None:
            is_next = place.last_offset == base_offset + entry
        else:
            is_next = place.base_offset == following or (
                following < place.base_offset <= cleaned_to
            )
        if not is_next or place.last_offset > last_offset_max(base_offset):
            return False
        following = place.last_offset + 1
        position = place.position + place.size
    if following is None or position != segment.size:
        return False
    segment.end_offset = following
    return True
