"""Opening a partition's folder: what is trusted, what is scanned, and what is cut.

After a clean stop everything is trusted and nothing but the ends of the newest files is read. After
an unclean one every segment from the recovery point on is scanned batch by batch: only a finished
fsync moves that point, so whatever lies below it is on the disk, and whatever lies above may be
missing, torn or zeros. The first bad batch ends the log; it and all behind it is cut off, because
no offset may be skipped (Kafka: LogLoader).

Everything here blocks and is meant for a thread. Memory is bounded by one chunk of a scan and one
segment's indexes.
"""

from __future__ import annotations

import logging

import attrs

from .config import LogConfig
from .directory import Directory
from .epoch_recovery import begin_next_epoch, epochs_of_batches, stored_epochs
from .leader_epochs import LeaderEpochs
from .producer_recovery import (
    producers_at,
    remove_stray_snapshots,
    snapshot_offsets,
    snapshots_among,
    write_snapshot,
)
from .producer_state import ProducerEntry, expired, replayed
from .scan import Scan
from .segment import BatchPlace, Segment, file_name
from .trust import forget_indexes, sync_segment, trust_active

logger = logging.getLogger("trionet.broker.log")

_OFFSET_DIGITS = 20
_LEFTOVERS = (".deleted", ".tmp", ".cleaned")
_INDEXES = ("index", "timeindex", "txnindex")
_SEGMENT_SUFFIXES = ("log", *_INDEXES, "snapshot")


@attrs.frozen(kw_only=True)
class Stop:
    """What is known of how the last run ended, from the data folder's checkpoints."""

    was_clean: bool = False
    recovery_point: int = 0
    start_offset: int = 0


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
        OSError: the folder cannot be read or written.
    """
    names = directory.names()
    segments = find_segments(directory, names, now_ms)
    segments = _without_removed(directory, segments, stop.start_offset)
    snapshots = snapshots_among(names)
    recovery_point = stop.recovery_point
    producers: dict[int, ProducerEntry] = {}
    epochs = stored_epochs(directory, name)
    is_as_closed = False
    if segments and stop.was_clean and trust_active(segments[-1]):
        recovery_point = segments[-1].end_offset
        producers = producers_at(directory, snapshots, segments, recovery_point, was_clean=True)
        is_as_closed = epochs is not None or not segments[-1].end_offset
        if epochs is None:
            epochs = epochs_of_batches(segments)
    elif segments:
        segments, producers, epochs = _Recovery(directory, name, config, stop, epochs).run(segments)
        recovery_point = segments[-1].end_offset
        snapshots = snapshot_offsets(directory)
    start_offset = max(stop.start_offset, segments[0].base_offset if segments else 0)
    if segments and start_offset > segments[-1].end_offset:
        logger.warning(
            "%s: the log ends at %d, before its start offset %d; it starts anew there",
            name,
            segments[-1].end_offset,
            start_offset,
        )
        remove_segments(directory, segments[::-1])
        segments = []
    if not segments:
        segments = [Segment.create(directory, start_offset, now_ms)]
        recovery_point, producers = start_offset, {}
        # Should a power cut take the file's name, an empty log is made again at 0.
        is_as_closed = not start_offset
    epochs = epochs or LeaderEpochs()
    epochs.remove_below(start_offset)
    if not len(epochs):
        epochs.assign(0, start_offset)
    remove_stray_snapshots(directory, snapshots, segments)
    # An idle partition holds no descriptor.
    if directory.is_durable:
        segments[-1].let_go()
    for producer_id in expired(producers, now_ms, config.producer_id_expiration_ms):
        del producers[producer_id]
    return LoadedLog(
        segments=segments,
        start_offset=start_offset,
        recovery_point=min(recovery_point, segments[-1].end_offset),
        producers=producers,
        epochs=epochs,
        is_as_closed=is_as_closed,
    )


def find_segments(directory: Directory, names: list[str], now_ms: int) -> list[Segment]:
    """The segments that a folder's names speak of, ascending; remains of removals are removed."""
    named: dict[str, set[int]] = {suffix: set() for suffix in _SEGMENT_SUFFIXES}
    for name in names:
        stem, _, suffix = name.partition(".")
        if name.endswith(_LEFTOVERS):
            directory.remove(name)
        elif suffix in named and len(stem) == _OFFSET_DIGITS and stem.isdigit():
            named[suffix].add(int(stem))
    for suffix in _INDEXES:
        for base_offset in named[suffix] - named["log"]:
            directory.remove(file_name(base_offset, suffix))
    bases = sorted(named["log"])
    # The end of the last one is found later.
    ends = [*bases[1:], *bases[-1:]]
    return [
        Segment.old(directory, base_offset, end_offset, now_ms)
        for base_offset, end_offset in zip(bases, ends, strict=True)
    ]


def _without_removed(
    directory: Directory, segments: list[Segment], start_offset: int
) -> list[Segment]:
    """Those that records are read from; a power cut may bring back what was being removed.

    It comes without what was not on the disk yet, so nobody may look into it.
    """
    removed = [each for each in segments[:-1] if each.end_offset <= start_offset]
    remove_segments(directory, removed)
    return segments[len(removed) :]


def remove_segments(directory: Directory, segments: list[Segment]) -> None:
    """Remove the files of segments, one after the other. Blocks; open files stay readable.

    The order is the caller's: at the front of a log the oldest goes first, at its end the newest,
    so that no gap is left in the middle if the power fails in between. Nothing else keeps one
    removal from reaching the disk before an earlier one, hence the sync after each.
    """
    for segment in segments:
        for suffix in _SEGMENT_SUFFIXES:
            directory.remove(file_name(segment.base_offset, suffix))
        directory.sync()


class _Recovery:
    """One folder after an unclean stop."""

    def __init__(
        self,
        directory: Directory,
        name: str,
        config: LogConfig,
        stop: Stop,
        epochs: LeaderEpochs | None,
    ) -> None:
        self._directory = directory
        self._name = name
        self._config = config
        self._recovery_point = stop.recovery_point
        self._producers: dict[int, ProducerEntry] = {}
        self._epochs = epochs

    def run(
        self, segments: list[Segment]
    ) -> tuple[list[Segment], dict[int, ProducerEntry], LeaderEpochs]:
        """Scan from the recovery point on.

        Returns:
            The segments that are left (at least one), what is known of the producers, and the
            leader epochs, with one more that begins now.
        """
        first = max(
            (i for i, each in enumerate(segments) if each.base_offset <= self._recovery_point),
            default=0,
        )
        trusted, doubtful = segments[:first], segments[first:]
        base_offset = doubtful[0].base_offset
        snapshots = snapshot_offsets(self._directory)
        self._producers = producers_at(
            self._directory, snapshots, trusted, base_offset, was_clean=False
        )
        logger.info(
            "%s: scanning %d bytes in %d segments from offset %d on",
            self._name,
            sum(segment.size for segment in doubtful),
            len(doubtful),
            base_offset,
        )
        for segment in trusted:
            segment.release()
        if trusted and base_offset not in snapshots:
            write_snapshot(self._directory, base_offset, self._producers)
        epochs = self._epochs = self._epochs or epochs_of_batches(trusted)
        kept = trusted + self._scan_all(doubtful)
        begin_next_epoch(self._directory, epochs, kept[-1].end_offset)
        return kept, self._producers, epochs

    def _scan_all(self, segments: list[Segment]) -> list[Segment]:
        kept: list[Segment] = []
        for number, segment in enumerate(segments):
            end_offset = kept[-1].end_offset if kept else segment.base_offset
            if segment.base_offset != end_offset and not self._config.may_have_gaps:
                gap = f"the next segment starts at {segment.base_offset}"
                self._cut(kept[-1], kept[-1].size, segments[number:], gap)
                break
            if kept:
                kept[-1].finish()
                kept[-1].save_indexes()
                write_snapshot(self._directory, segment.base_offset, self._producers)
            kept.append(segment)
            size = segment.size
            damage = self._scan(segment)
            if damage is not None:
                self._cut(segment, size, segments[number + 1 :], damage)
                break
        for segment in kept:
            sync_segment(segment)
        for segment in kept[:-1]:
            segment.release()
        self._directory.sync()
        return kept

    def _scan(self, segment: Segment) -> str | None:
        """Index the valid batches of a segment, and shrink it to them.

        Returns:
            What is wrong behind them; None if nothing is there.
        """
        forget_indexes(segment)
        epochs = self._epochs
        assert epochs is not None
        scan = Scan(
            segment.file,
            segment.size,
            segment.base_offset,
            gaps_allowed=self._config.may_have_gaps,
        )
        for header in scan:
            place = BatchPlace(header.base_offset, header.last_offset, scan.position, header.size)
            segment.note(place, header.max_timestamp, self._config.index_interval_bytes)
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._producers[header.producer_id] = replayed(
                    self._producers.get(header.producer_id), header
                )
        segment.grow(scan.position, scan.next_offset, segment.modified_ms)
        return scan.damage

    def _cut(self, segment: Segment, size: int, newer: list[Segment], damage: str) -> None:
        """End the log behind the valid part of ``segment``, whose file has ``size`` bytes."""
        lost = size - segment.size + sum(each.size for each in newer)
        report = logger.error if segment.end_offset < self._recovery_point else logger.warning
        report(
            "%s: cut at offset %d, byte %d of %s: %s; %d bytes are lost, %d newer segments "
            "with them",
            self._name,
            segment.end_offset,
            segment.size,
            segment.name("log"),
            damage,
            lost,
            len(newer),
        )
        # The newer ones go first: if the power fails in between, the damage still ends the log.
        remove_segments(self._directory, newer[::-1])
        segment.file.truncate(segment.size)
