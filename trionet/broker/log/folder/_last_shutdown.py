"""Reads the record of the last shutdown from a data directory.

The start offset of a log is saved before the files below it are removed, so that the next startup
can distinguish deleted records from missing ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import attrs

from ..files._checkpoint_files import (
    CLEAN_SHUTDOWN_FILE,
    RECOVERY_POINT_FILE,
    START_OFFSET_FILE,
    PartitionKey,
    decode_offsets,
    is_deleted_name,
    partition_of,
)
from ..files._directory import Directory
from ..files._extents import EXTENT_FILE, Extent, decode_extents
from ..recovery._log_loader import LastShutdown

logger = logging.getLogger("trionet.broker.log")

T = TypeVar("T")


@attrs.frozen
class ShutdownRecord:
    """The state of a data directory at the last shutdown, as recorded in its files.

    Attributes:
        was_clean: whether everything had been flushed.
        recovery_points: the recovery point of each log, from Kafka's checkpoint.
        start_offsets: the start offset of each log that starts inside a segment, from Kafka's
            checkpoint.
        extents: the part of each log that was on disk; None if the file is missing or damaged.
    """

    was_clean: bool
    recovery_points: dict[PartitionKey, int]
    start_offsets: dict[PartitionKey, int]
    extents: dict[PartitionKey, Extent] | None

    def of(self, key: PartitionKey, *, loss_allowed: bool) -> LastShutdown:
        """Return what is recorded for a partition, or for an earlier partition of the same name.

        Args:
            key: the partition.
            loss_allowed: whether the partition's log may be opened with missing records.
        """
        if self.extents is None:
            return LastShutdown(
                was_clean=self.was_clean,
                recovery_point=self.recovery_points.get(key, 0),
                start_offset=self.start_offsets.get(key, 0),
                loss_allowed=loss_allowed,
            )
        extent = self.extents.get(key)
        if extent is None:
            # The other files may still refer to an earlier topic of this name.
            return LastShutdown(was_clean=self.was_clean, loss_allowed=loss_allowed)
        return LastShutdown(
            was_clean=self.was_clean,
            recovery_point=extent.end_offset,
            start_offset=extent.start_offset,
            extent=extent,
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
