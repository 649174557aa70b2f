"""Opening a partition's folder: what is trusted, what is scanned, and what is cut.

After a clean stop everything is trusted and nothing but the ends of the newest files is read. After
an unclean one every segment from the recovery point on is scanned batch by batch: only a finished
fsync moves that point, so whatever lies below it is on the disk, and whatever lies above may be
missing, torn or zeros. The first bad batch ends the log; it and all behind it is cut off, because
no offset may be skipped (Kafka: LogLoader).

What lies below that point and is not there was taken away. It is reported, and no record ever gets
its offset again; what is behind it stays (see :mod:`._missing_records` and :mod:`._empty_batches`).

Everything here blocks and is meant for a thread. Memory is bounded by one chunk of a scan and one
segment's indexes.
"""

from __future__ import annotations

import logging

import attrs

from ..files._directory import Directory
from ..files._extents import Extent
from ..segments._log_config import LogConfig
from ..segments._segment import Segment
from ..segments._segment_files import find_segments, remove_segments
from ..state._epoch_recovery import begin_next_epoch, epochs_of_batches, stored_epochs
from ..state._leader_epochs import LeaderEpochs
from ..state._producer_recovery import (
    producers_at,
    remove_stray_snapshots,
    snapshot_offsets,
    snapshots_among,
)
from ..state._producer_state import ProducerEntry, expired
from ._clean_start import trust_active
from ._empty_batches import cut_off, fill
from ._missing_records import Losses, find_gaps
from ._recovery_scan import Scanning

logger = logging.getLogger("trionet.broker.log")

_OFFSET_MAX = 2**63 - 1


@attrs.frozen(kw_only=True)
class Stop:
    """What is known of how the last run ended, from the data folder's checkpoints."""

    was_clean: bool = False
    recovery_point: int = 0
    start_offset: int = 0
    extent: Extent | None = None
    """What had been on the disk; None: no more is known than the recovery point."""
    loss_allowed: bool = True
    """Whether the log may be opened although records are missing."""


@attrs.define(kw_only=True)
class LoadedLog:
    """What was found in a folder; everything a log needs to go on."""

    segments: list[Segment]
    start_offset: int
    recovery_point: int
    producers: dict[int, ProducerEntry]
    epochs: LeaderEpochs
    is_as_closed: bool
    """The files are what a clean stop would leave."""


def load(directory: Directory, name: str, config: LogConfig, stop: Stop, now_ms: int) -> LoadedLog:
    """Open what a folder holds, or start an empty log in it.

    Args:
        directory: the partition's folder.
        name: of the partition, for messages.
        config: its settings.
        stop: how the last run ended.
        now_ms: the clock, for the age of segments and for producers that have expired.

    Raises:
        MissingRecordsError: records are gone, and the log may not be opened without them.
        OSError: the folder cannot be read or written.
    """
    return _Loading(directory, name, config, stop, now_ms).load()


def _had_epochs(stop: Stop) -> bool:
    """Whether the file of the leader epochs had been written: an empty log of epoch 0 has none."""
    extent = stop.extent
    return extent is not None and bool(extent.leader_epoch or (stop.was_clean and extent.size > 0))


class _Loading:
    """Opening one folder; see :func:`load`."""

    def __init__(
        self, directory: Directory, name: str, config: LogConfig, stop: Stop, now_ms: int
    ) -> None:
        self._directory = directory
        self._name = name
        self._config = config
        self._stop = stop
        self._now_ms = now_ms
        self._losses = Losses(name, stop.extent, allowed=stop.loss_allowed)
        self._epochs = stored_epochs(directory, name, is_expected=_had_epochs(stop))
        self._producers: dict[int, ProducerEntry] = {}
        self._was_clean = stop.was_clean

    def load(self) -> LoadedLog:
        directory, stop = self._directory, self._stop
        names = directory.names()
        segments = find_segments(directory, names, self._now_ms)
        segments = self._without_removed(segments)
        snapshots = snapshots_among(names)
        is_as_closed = False
        epochs = self._epochs
        if segments:
            had_epochs = epochs is not None
            segments = self._up_to_the_end(self._without_gaps(segments), snapshots)
            epochs = self._epochs
            is_as_closed = self._was_clean and not self._losses.count and had_epochs
        if not segments:
            segments, epochs = self._begin_anew()
            # Should a power cut take the file's name, an empty log is made again at 0.
            is_as_closed = not segments[0].base_offset
        start_offset = max(stop.start_offset, segments[0].base_offset)
        epochs = epochs or LeaderEpochs()
        epochs.remove_below(start_offset)
        if not len(epochs):
            epochs.assign(0, start_offset)
        if not self._was_clean:
            snapshots = snapshot_offsets(directory)
        remove_stray_snapshots(directory, snapshots, segments)
        # An idle partition holds no descriptor.
        if directory.is_durable:
            segments[-1].let_go()
        producers, expiration_ms = self._producers, self._config.producer_id_expiration_ms
        for producer_id in expired(producers, self._now_ms, expiration_ms):
            del producers[producer_id]
        return LoadedLog(
            segments=segments,
            start_offset=start_offset,
            recovery_point=segments[-1].end_offset,
            producers=producers,
            epochs=epochs,
            is_as_closed=is_as_closed,
        )

    def _without_removed(self, segments: list[Segment]) -> list[Segment]:
        """Those that records are read from; a power cut may bring back what was being removed.

        It comes without what was not on the disk yet, so nobody may look into it.
        """
        start_offset = self._stop.start_offset
        removed = [each for each in segments[:-1] if each.end_offset <= start_offset]
        remove_segments(self._directory, removed)
        return segments[len(removed) :]

    def _without_gaps(self, segments: list[Segment]) -> list[Segment]:
        """The segments, with others in the place of those that are gone."""
        stop, losses = self._stop, self._losses
        trusted_up_to = _OFFSET_MAX if stop.was_clean else stop.recovery_point
        may_have_gaps = self._config.may_have_gaps
        gaps = find_gaps(segments, trusted_up_to, losses, may_have_gaps=may_have_gaps)
        losses.check()
        for segment, first_offset, end_offset, position in gaps:
            cut_off(segment, first_offset, position)
            filling = self._fill(first_offset, end_offset)
            for each in (segment, *filling):
                each.release()
            at = segments.index(segment)
            before = segments[: at + 1] if position else segments[:at]
            segments = [*before, *filling, *segments[at + 1 :]]
        return segments

    def _fill(self, first_offset: int, end_offset: int) -> list[Segment]:
        epoch = self._epochs.at(first_offset) if self._epochs is not None else 0
        filling = fill(self._directory, first_offset, end_offset, max(epoch, 0), self._now_ms)
        self._losses.filled += sum(each.size for each in filling)
        self._directory.sync()
        return filling

    def _up_to_the_end(self, segments: list[Segment], snapshots: list[int]) -> list[Segment]:
        """Find where the log ends, and have it end no earlier than it did.

        Returns:
            The segments; none if the log ends before its start.
        """
        stop, losses, epochs = self._stop, self._losses, self._epochs
        end_offset_max = _OFFSET_MAX if stop.extent is None else stop.extent.end_offset
        self._was_clean = self._was_clean and trust_active(
            segments[-1], end_offset_max, gaps_allowed=self._config.may_have_gaps
        )
        if not self._was_clean:
            scanning = Scanning(
                self._directory,
                self._name,
                self._config,
                stop.recovery_point,
                losses,
                self._now_ms,
            )
            segments, self._producers, epochs = scanning.run(segments, epochs)
        elif epochs is None:
            epochs = epochs_of_batches(segments)
        end_offset = segments[-1].end_offset
        if end_offset < stop.start_offset:
            self._leave_what_is_deleted(segments)
            return []
        if end_offset < stop.recovery_point:
            losses.note_behind(segments, stop.recovery_point, self._next)
        losses.check()
        epoch = stop.extent.leader_epoch if stop.extent is not None else 0
        if not self._was_clean or losses.count:
            begin_next_epoch(self._directory, epochs, end_offset, epoch)
        elif epochs.latest < epoch:
            epochs.assign(epoch, end_offset)
        self._epochs = epochs
        if end_offset < stop.recovery_point:
            segments = self._filled_up(segments)
        if self._was_clean:
            self._producers = producers_at(
                self._directory,
                snapshots,
                segments,
                segments[-1].end_offset,
                may_have_none=stop.extent is None,
            )
        return segments

    @property
    def _next(self) -> str:
        return f"the next record gets offset {self._stop.recovery_point}"

    def _filled_up(self, segments: list[Segment]) -> list[Segment]:
        """The segments, with one behind them that takes the log to where it had ended."""
        last = segments[-1]
        cut_off(last, last.end_offset, last.size)
        last.finish()
        last.save_indexes()
        filling = self._fill(last.end_offset, self._stop.recovery_point)
        for each in (last, *filling[:-1]):
            each.release()
        return [*(segments if last.size else segments[:-1]), *filling]

    def _leave_what_is_deleted(self, segments: list[Segment]) -> None:
        """Remove a log that ends before its start: all that is there has been deleted."""
        stop, end_offset = self._stop, segments[-1].end_offset
        logger.warning(
            "%s: the log ends at %d, before its start offset %d; it starts anew there",
            self._name,
            end_offset,
            stop.start_offset,
        )
        self._note_all_missing(f"{segments[-1].name('log')} ends at offset {end_offset}")
        remove_segments(self._directory, segments[::-1])

    def _note_all_missing(self, where: str) -> None:
        stop = self._stop
        if stop.start_offset < stop.recovery_point and not self._losses.count:
            size = None if stop.extent is None else stop.extent.size
            self._losses.note(stop.start_offset, stop.recovery_point, size, where, self._next)
        self._losses.check()

    def _begin_anew(self) -> tuple[list[Segment], LeaderEpochs]:
        """A log without records, which begins where the one ended that was there."""
        stop, epochs = self._stop, self._epochs or LeaderEpochs()
        self._note_all_missing("the folder has no segment")
        start_offset = max(stop.start_offset, stop.recovery_point)
        segments = [Segment.create(self._directory, start_offset, self._now_ms)]
        epoch = stop.extent.leader_epoch if stop.extent is not None else 0
        if self._losses.count or (stop.extent is not None and max(start_offset, epoch)):
            begin_next_epoch(self._directory, epochs, start_offset, epoch)
        return segments, epochs
