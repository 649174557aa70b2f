"""The checkpoint files of a data directory: the start offset and recovery point of each log.

A crash could undo a start offset that was reported to a client before it was on disk, so callers
wait for the write. The start offset of a log is saved before the files below it are removed, so
that the next startup can distinguish deleted records from missing ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs
import trio

from ...._util._logging import get_logger
from .._log import Log
from ..files._checkpoint_files import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_FILE,
    EXTENT_FILE,
    RECOVERY_POINT_FILE,
    START_OFFSET_FILE,
    Extent,
    PartitionKey,
    decode_extents,
    decode_offsets,
    encode_extents,
    encode_offsets,
    extent_line,
    is_deleted_name,
    partition_of,
)
from ..files._directory import Directory, run_blocking
from ..recovery._log_loader import LastShutdown
from ._turns import in_turns

logger = get_logger("trionet.broker.log")

# By how much a file may grow and still be written on a full disk, so that records can be deleted to
# free space: a line for each of a few partitions, and less than a block.
GROWTH_BYTES = 512

T = TypeVar("T")


class Checkpointing:
    """Writes the checkpoint files of one data directory, one file at a time.

    Args:
        directory: the data directory.
        logs: a live view of all open logs.

    Attributes:
        first_dirty_offsets: the first offset that compaction has not cleaned, of each partition
            that it has cleaned.
    """

    def __init__(self, directory: Directory, logs: Mapping[PartitionKey, Log]) -> None:
        self._directory = directory
        self._logs = logs
        self._writing = trio.Lock()
        self._requested = self._written = 0
        # Whose keys are partitions. Of dicts, since a set of 100,000 tuples takes 15 ms to make.
        self._stored: dict[str, Mapping[PartitionKey, object]] = {}
        self._being_stored: Mapping[PartitionKey, object] = {}
        self._walked: dict[PartitionKey, object] = {}
        self._lines: dict[PartitionKey, tuple[tuple[object, ...], bytes]] = {}
        self.first_dirty_offsets: dict[PartitionKey, int] = {}

    def load_first_dirty(self, offsets: Mapping[PartitionKey, int]) -> None:
        """Take over the offsets that the last run stored, as far as the logs reach."""
        self._stored[CLEANER_OFFSET_FILE] = offsets
        self.first_dirty_offsets.update(
            (key, offset)
            for key, offset in offsets.items()
            if key in self._logs and offset <= self._logs[key].end_offset
        )

    async def set_first_dirty(self, log: Log, offset: int) -> None:
        """Set and save an offset; see :meth:`.LogFolder.set_first_dirty`."""
        key = log.topic, log.partition
        async with self._writing:
            if self._logs.get(key) is log:
                self.first_dirty_offsets[key] = offset
                await self._replace_first_dirty()

    def mentions(self, key: PartitionKey) -> bool:
        """Return whether a checkpoint file lists a partition, or may after the current write."""
        files = (self._walked, self._being_stored, *self._stored.values())
        return any(key in keys for keys in files)

    async def write_all(self) -> None:
        """Write all files; see :meth:`.LogFolder.write_checkpoints`."""
        async with self._writing:
            recovery_points = await self._of_all(lambda log: log.stored_recovery_point)
            # First: a recovery point may lie after segments that are still being removed.
            await self._replace_start_offsets()
            await self._replace(
                RECOVERY_POINT_FILE, recovery_points, lambda: encode_offsets(recovery_points)
            )
            stored = self._stored.get(CLEANER_OFFSET_FILE, {})
            if not stored.keys() <= self._logs.keys():
                await self._replace_first_dirty()
            self._walked = {}

    async def write_start_offsets(self) -> None:
        """Write the start offsets; see :meth:`.LogFolder.write_start_offsets`."""
        self._requested += 1
        asked = self._requested
        async with self._writing:
            if self._written < asked:
                await self._replace_start_offsets()
                self._walked = {}

    async def write_extent(self, log: Log) -> None:
        """Write the extents, of which only that of ``log`` is a new one.

        Compaction does this for each group of segments, and computing the extents of thousands of
        logs each time would hold the loop.
        """
        async with self._writing:
            self._lines[log.topic, log.partition] = _state_and_line(log)
            await self._replace_extents()

    async def _replace_start_offsets(self) -> None:
        covered = self._requested
        starts = await self._of_all(
            lambda log: log.start_offset if log.starts_inside_segment else None
        )
        if self._directory.is_durable:
            # First, because it takes precedence; the others are for Kafka, and in case it is lost.
            await self._renew_lines()
            await self._replace_extents()
        await self._replace(START_OFFSET_FILE, starts, lambda: encode_offsets(starts))
        self._written = covered

    async def _replace_first_dirty(self) -> None:
        offsets = {key: each for key, each in self.first_dirty_offsets.items() if key in self._logs}
        await self._replace(CLEANER_OFFSET_FILE, offsets, lambda: encode_offsets(offsets))

    async def _replace_extents(self) -> None:
        lines = self._lines

        def encode() -> bytes:
            return encode_extents(line for key, (_, line) in lines.items() if key in self._logs)

        await self._replace(EXTENT_FILE, lines, encode)

    async def _renew_lines(self) -> None:
        """Make one line per log, reusing the lines of unchanged logs."""
        known = self._lines

        def line_of(log: Log) -> tuple[tuple[object, ...], bytes]:
            before = known.get((log.topic, log.partition))
            return _state_and_line(log) if before is None or before[0] != _state(log) else before

        self._lines = await self._of_all(line_of)

    async def _of_all(self, value_of: Callable[[Log], T | None]) -> dict[PartitionKey, T]:
        """Return the value of each log that has one; other tasks run in between."""
        # A log that is created in place of one of these waits for the end of the write.
        self._walked.update(self._logs)
        values: dict[PartitionKey, T] = {}
        for some in in_turns(self._logs):
            for key, log in some:
                if (value := value_of(log)) is not None:
                    values[key] = value
            await trio.lowlevel.checkpoint()
        return values

    async def _replace(
        self, name: str, listed: Mapping[PartitionKey, object], encode: Callable[[], bytes]
    ) -> None:
        """Write a checkpoint file that lists the partitions that are the keys of ``listed``.

        Args:
            name: the file's name.
            listed: the partitions; ``encode`` may leave out some that are deleted.
            encode: returns the content. It runs in a thread, as whatever visits the partitions of
                100,000 logs in one go would hold the loop for tens of milliseconds.
        """
        self._being_stored = listed
        try:
            await run_blocking(self._directory, self._encode_and_replace, name, encode)
        except BaseException:
            # The file may be the old one or the new one.
            listed = {**self._stored.get(name, {}), **listed}
            raise
        finally:
            self._stored[name] = listed
            self._being_stored = {}

    def _encode_and_replace(self, name: str, encode: Callable[[], bytes]) -> None:
        self._directory.replace_in_turn(name, encode(), GROWTH_BYTES)


def _state(log: Log) -> tuple[object, ...]:
    """Return what changes whenever the extent of a log does, and is quicker to compute."""
    return (
        log.topic_id,
        log.start_offset,
        # Removing segments below the start offset changes nothing else.
        log.first_segment_offset,
        log.stored_recovery_point,
        log.leader_epoch,
        log.replacements,
    )


def _state_and_line(log: Log) -> tuple[tuple[object, ...], bytes]:
    return _state(log), extent_line((log.topic, log.partition), log.extent)


@attrs.frozen
class ShutdownRecord:
    """The state of a data directory at the last shutdown, as recorded in its files.

    Attributes:
        was_clean: whether everything had been flushed.
        recovery_points: the recovery point of each log, from Kafka's checkpoint.
        start_offsets: the start offset of each log that starts inside a segment, from Kafka's
            checkpoint.
        extents: the part of each log that was on disk; None if the file is missing or damaged.
        first_dirty_offsets: the first offset of each compacted log that was not cleaned.
    """

    was_clean: bool
    recovery_points: dict[PartitionKey, int]
    start_offsets: dict[PartitionKey, int]
    extents: dict[PartitionKey, Extent] | None
    first_dirty_offsets: dict[PartitionKey, int]

    def of(self, key: PartitionKey, *, loss_allowed: bool) -> LastShutdown:
        """Return what is recorded for a partition, or for an earlier partition of the same name.

        Args:
            key: the partition.
            loss_allowed: whether the partition's log may be opened with missing records.
        """
        extent: Extent | None = None
        if self.extents is None:
            recovery_point = self.recovery_points.get(key, 0)
            start_offset = self.start_offsets.get(key, 0)
        else:
            # Without an extent, the other files may still refer to an earlier topic of this name.
            extent = self.extents.get(key)
            recovery_point = 0 if extent is None else extent.end_offset
            start_offset = 0 if extent is None else extent.start_offset
        return LastShutdown(
            was_clean=self.was_clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            extent=extent,
            # Either file may be missing, or be that of a release without the other one.
            cleaned_to=max(
                0 if extent is None else extent.cleaned_to, self.first_dirty_offsets.get(key, 0)
            ),
            is_cleaned_to_known=self.extents is not None,
            loss_allowed=loss_allowed,
        )


def read_shutdown_record(directory: Directory) -> ShutdownRecord:
    """Read the record of the last shutdown, and complete interrupted deletions. Blocks.

    From then on, the directory counts as not cleanly shut down until the next clean shutdown.

    Raises:
        OSError: the directory cannot be read or written.
    """
    names = directory.names()
    has_logs = any(partition_of(folder) for folder in directory.folders())
    was_clean = CLEAN_SHUTDOWN_FILE in names or not has_logs
    if CLEAN_SHUTDOWN_FILE in names:
        directory.remove(CLEAN_SHUTDOWN_FILE)
        directory.sync()
    for folder in directory.folders():
        if is_deleted_name(folder):
            directory.remove_folder(folder)
    expected = {RECOVERY_POINT_FILE, START_OFFSET_FILE} if has_logs else set()
    if has_logs and EXTENT_FILE not in names and directory.is_durable:
        logger.warning(
            "%s is missing: without it, missing records can be detected only between two segments",
            EXTENT_FILE,
        )
    for name in sorted(expected.difference(names)):
        logger.warning("%s is missing; using %s instead", name, EXTENT_FILE)
    return ShutdownRecord(
        was_clean,
        _read(directory, RECOVERY_POINT_FILE, decode_offsets) or {},
        _read(directory, START_OFFSET_FILE, decode_offsets) or {},
        _read(directory, EXTENT_FILE, decode_extents),
        _read(directory, CLEANER_OFFSET_FILE, decode_offsets) or {},
    )


def _read(
    directory: Directory, name: str, decode: Callable[[bytes], dict[PartitionKey, T]]
) -> dict[PartitionKey, T] | None:
    try:
        return decode(directory.read(name))
    except FileNotFoundError:
        pass
    except ValueError as error:
        logger.warning("ignoring %s, which is damaged: %s", name, error)
    return None
