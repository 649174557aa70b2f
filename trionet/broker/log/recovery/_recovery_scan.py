"""Scans the segments that an unclean shutdown may have left incomplete or torn, batch by batch.

(Kafka: LogLoader.recoverLog.) See :mod:`._log_loader` for the reasons and the start of a scan. The
order of writes matters when a log is truncated: newer segments are removed first, in descending
order, and the torn segment is truncated last. If the power fails in between, the damage is still
there to mark the end of the log.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...._util._logging import get_logger
from ...._util.files._log_file import LogFile
from ....errors import WireFormatError
from ....protocol.records._batch import CRC_START, HEADER_SIZE, BatchHeader, check_crc, read_header
from ....protocol.records._crc32c import crc32c
from ..files._directory import Directory
from ..segments._log_batches import BatchPlace, marker_at
from ..segments._log_config import LogConfig
from ..segments._segment import Segment
from ..segments._segment_indexes import ENTRY_MAX
from ..segments._segments import remove_segments
from ..state._leader_epochs import EPOCH_MAX, LeaderEpochs, epochs_of_batches
from ..state._producer_state import (
    ProducerEntry,
    open_transactions_of,
    producers_at,
    replay,
    snapshots_among,
    write_snapshot,
)
from ..validation._validation import records_max
from ._missing_records import MissingRecords, fill_gap, truncate_segment

logger = get_logger("trionet.broker.log")

# The memory that a scan uses, whatever sizes the file claims.
CHUNK_BYTES = 1048576

_OFFSET_MAX = 2**63 - 2  # the offset after it has to be valid too


class RecoveryScan:
    """The scan of one partition's directory after an unclean shutdown.

    Args:
        directory: the partition's directory.
        name: the partition's name, for use in messages.
        config: the settings of the topic.
        recovery_point: the offset below which all records had been on disk.
        cleaned_to: the offset below which compaction may have left gaps.
        losses: collects the records that are missing below the recovery point.
        now_ms: the current time.
    """

    def __init__(
        self,
        directory: Directory,
        name: str,
        config: LogConfig,
        recovery_point: int,
        cleaned_to: int,
        losses: MissingRecords,
        now_ms: int,
    ) -> None:
        self._directory = directory
        self._name = name
        self._config = config
        self._recovery_point = recovery_point
        self._cleaned_to = cleaned_to
        self._losses = losses
        self._now_ms = now_ms
        self._producers: dict[int, ProducerEntry] = {}
        self._epochs = LeaderEpochs()

    def run(
        self, segments: list[Segment], epochs: LeaderEpochs
    ) -> tuple[list[Segment], dict[int, ProducerEntry], LeaderEpochs]:
        """Scan the log, starting with the segment that contains the recovery point.

        Args:
            segments: all segments, at least one; without gaps below the recovery point.
            epochs: the stored leader epochs; empty if unknown.

        Returns:
            The remaining segments (at least one), the producers, and the leader epochs.

        Raises:
            MissingRecordsError: records are missing, and the log may not be opened without them.
            OSError: the directory cannot be read or written.
        """
        scan_from = self._recovery_point
        extent = self._losses.extent
        if extent is not None:
            # If the log rolled right at the recovery point, the last run may have synced neither
            # the end of that segment's indexes nor the file of the next one.
            scan_from = min(scan_from, extent.base_offset)
        first = max(
            (i for i, each in enumerate(segments) if each.base_offset <= scan_from), default=0
        )
        trusted, doubtful = segments[:first], segments[first:]
        base_offset = doubtful[0].base_offset
        snapshots = snapshots_among(self._directory.names())
        self._producers = producers_at(self._directory, snapshots, trusted, base_offset)
        logger.info(
            "%s: scanning %d bytes in %d segments, starting at offset %d",
            self._name,
            sum(segment.size for segment in doubtful),
            len(doubtful),
            base_offset,
        )
        # One that is damaged has been removed.
        if trusted and base_offset not in snapshots_among(self._directory.names()):
            write_snapshot(self._directory, base_offset, self._producers)
        self._epochs = epochs or epochs_of_batches(trusted)
        kept = trusted + self._scan_all(trusted, doubtful)
        return kept, self._producers, self._epochs

    def _scan_all(self, trusted: list[Segment], segments: list[Segment]) -> list[Segment]:
        kept: list[Segment] = []
        damage: str | None = None
        for number, segment in enumerate(segments):
            end_offset = kept[-1].end_offset if kept else segment.base_offset
            had_been_there = end_offset < min(self._recovery_point, segment.base_offset)
            is_cleaned = damage is None and end_offset < segment.base_offset <= self._cleaned_to
            if segment.base_offset == end_offset or is_cleaned:
                pass  # only Kafka's compaction leaves gaps between segments
            elif had_been_there:
                self._bridge([*trusted, *kept], kept, segment)
            else:
                gap = f"the next segment starts at {segment.base_offset}"
                self._cut(kept[-1], kept[-1].size, segments[number:], gap)
                break
            if kept:
                self._finish(kept[-1], segment.base_offset)
            kept.append(segment)
            size = segment.size
            damage = self._scan(segment)
            if damage is not None and segment.end_offset < self._recovery_point:
                # The rest had been on disk too: keep the newer segments.
                self._losses.note_cut(segment, size, damage)
            elif damage is not None:
                self._cut(segment, size, segments[number + 1 :], damage)
                break
        kept[-1].file.sync()
        kept[-1].indexes.sync()
        self._directory.sync()
        return kept

    def _finish(self, segment: Segment, offset: int) -> None:
        """Bring a segment that is not the last one to the disk, and release it."""
        segment.indexes.finish()
        segment.indexes.save()
        segment.file.sync()
        segment.indexes.sync()
        segment.release()
        write_snapshot(self._directory, offset, self._producers)

    def _bridge(self, found: list[Segment], kept: list[Segment], following: Segment) -> None:
        """Fill the gap between the segments ``kept`` and the next existing segment."""
        last = kept[-1]
        first_offset, end_offset = last.end_offset, following.base_offset
        self._losses.note_end(found, end_offset, "consumers skip them")
        self._losses.check()
        truncate_segment(last, last.end_offset, last.size)
        epoch = max(self._epochs.latest, 0)
        if last.size:
            self._finish(last, first_offset)
        else:
            kept.pop()
        filling = fill_gap(self._directory, first_offset, end_offset, epoch, self._now_ms)
        self._losses.filled += sum(each.size for each in filling)
        for each in filling[:-1]:
            each.release()
        kept.extend(filling)

    def _scan(self, segment: Segment) -> str | None:
        """Index the valid batches of a segment, and exclude everything after them.

        Batches that claim more records than they can hold are kept if valid batches follow, because
        an earlier release of trionet accepted such batches. Directly before damage, they are
        excluded too, because a failed append may have left them there.

        Returns:
            The damage after the valid batches; None if there is none.
        """
        producers = dict(self._producers)
        scan, implausible_at = self._scan_up_to(segment, segment.size)
        damage = scan.damage
        if damage is not None and implausible_at is not None:
            self._producers = producers
            scan, _ = self._scan_up_to(segment, implausible_at)
        segment.grow(scan.position, scan.next_offset, segment.modified_ms)
        return damage

    def _scan_up_to(self, segment: Segment, size: int) -> tuple[BatchScan, int | None]:
        """Index the batches within ``size``; also return the start of trailing implausible ones."""
        segment.indexes.drop()
        epochs = self._epochs
        scan = BatchScan(segment.file, size, segment.base_offset, self._cleaned_to)
        transactions = open_transactions_of(self._producers)
        implausible_at: int | None = None
        for header in scan:
            if header.count <= records_max(header):
                implausible_at = None
            elif implausible_at is None:
                implausible_at = scan.position
            place = BatchPlace(header.base_offset, header.last_offset, scan.position, header.size)
            segment.indexes.add(place, header.max_timestamp, self._config.index_interval_bytes)
            if epochs.latest < header.leader_epoch <= EPOCH_MAX:
                epochs.assign(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                is_control = header.is_control
                marker = marker_at(segment.file, header, scan.position) if is_control else None
                aborted = replay(self._producers, transactions, header, marker)
                if aborted is not None:
                    segment.indexes.add_aborted(aborted)
        return scan, implausible_at

    def _cut(self, segment: Segment, size: int, newer: list[Segment], damage: str) -> None:
        """Truncate the log after the valid part of ``segment``, whose file has ``size`` bytes."""
        logger.warning(
            "%s: truncated at offset %d, byte %d of %s: %s; dropped %d bytes and %d newer segments",
            self._name,
            segment.end_offset,
            segment.size,
            segment.name("log"),
            damage,
            size - segment.size + sum(each.size for each in newer),
            len(newer),
        )
        # Newer segments first: if the power fails in between, the damage still ends the log.
        remove_segments(self._directory, newer[::-1])
        segment.file.truncate(segment.size)


def last_offset_max(base_offset: int) -> int:
    """Return the greatest offset that a segment with this base offset can contain."""
    return min(base_offset + ENTRY_MAX, _OFFSET_MAX)


class BatchScan:
    """The valid batches of a file, up to the first invalid one.

    It can be iterated only once. Afterwards, :attr:`position` is the end of the valid part, and
    :attr:`damage` describes the damage there; None if the whole file is valid.

    Args:
        file: the log file.
        size: the size of the file in bytes.
        base_offset: the base offset of the segment.
        cleaned_to: the offset below which compaction may have left gaps. Above it, a gap counts as
            damage, because the CRC does not cover the base offset of a batch.
    """

    def __init__(self, file: LogFile, size: int, base_offset: int, cleaned_to: int) -> None:
        self.position = 0
        self.damage: str | None = None
        self.next_offset = base_offset
        self._file = file
        self._size = size
        self._last_offset_max = last_offset_max(base_offset)
        self._cleaned_to = cleaned_to

    def __iter__(self) -> Iterator[BatchHeader]:
        """Yield the header of each valid batch, which starts at :attr:`position`. Blocks."""
        while self.position < self._size:
            start = self.position
            chunk = memoryview(self._file.read_at(start, min(CHUNK_BYTES, self._size - start)))
            at = 0
            while len(chunk) - at >= HEADER_SIZE:
                try:
                    header = read_header(chunk, at)
                except WireFormatError as error:
                    self.damage = str(error)
                    return
                self.damage = self._header_damage(header)
                if self.damage is None and at + header.size > len(chunk):
                    if at:
                        break  # the next chunk starts with it
                    if not self._long_batch_is_whole(header):
                        self.damage = "the CRC does not match"
                elif self.damage is None and not check_crc(chunk, at, header):
                    self.damage = "the CRC does not match"
                if self.damage is not None:
                    return
                yield header
                self.next_offset = header.last_offset + 1
                at += header.size
                self.position = start + at
            if self.position == start:
                self.damage = "the file ends inside a batch header"
                return

    def _header_damage(self, header: BatchHeader) -> str | None:
        if header.magic != 2:
            return f"magic is {header.magic}, not 2"
        if header.size > self._size - self.position:
            return f"the file ends inside a batch of {header.size} bytes"
        expected = self.next_offset
        if header.base_offset != expected and not (
            expected < header.base_offset <= self._cleaned_to
        ):
            return f"offset {header.base_offset}, expected {expected}"
        if header.last_offset_delta < 0 or header.last_offset > self._last_offset_max:
            return f"a last offset delta of {header.last_offset_delta} is out of range"
        return None

    def _long_batch_is_whole(self, header: BatchHeader) -> bool:
        """Verify, chunk by chunk, the CRC of a batch that exceeds a chunk."""
        value = 0
        at, end = self.position + CRC_START, self.position + header.size
        while at < end:
            chunk = self._file.read_at(at, min(CHUNK_BYTES, end - at))
            if not chunk:
                return False
            value = crc32c(chunk, value)
            at += len(chunk)
        return value == header.crc
