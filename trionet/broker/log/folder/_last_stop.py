"""How the last run of a broker ended, according to its data folder.

Where a log starts is written down before the files below it go, so that a start can tell what was
deleted from what is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import attrs

from ..files._checkpoint_files import (
    CLEAN_STOP_FILE,
    RECOVERY_POINT_FILE,
    START_OFFSET_FILE,
    PartitionKey,
    decode_offsets,
    is_deleted_name,
    partition_of,
)
from ..files._directory import Directory
from ..files._extents import EXTENT_FILE, Extent, decode_extents
from ..recovery._log_loader import Stop

logger = logging.getLogger("trionet.broker.log")

T = TypeVar("T")


@attrs.frozen
class LastStop:
    """What the files of a data folder tell of its last broker.

    Attributes:
        was_clean: it has put everything on the disk.
        recovery_points: up to where each log is on the disk, as Kafka writes it.
        start_offsets: of logs that do not begin with a segment, as Kafka writes it.
        extents: the same and more; None if nobody has written them, or they are damaged.
    """

    was_clean: bool
    recovery_points: dict[PartitionKey, int]
    start_offsets: dict[PartitionKey, int]
    extents: dict[PartitionKey, Extent] | None

    def of(self, key: PartitionKey, *, loss_allowed: bool) -> Stop:
        """What is known of one partition, or of an earlier one of the same name.

        Args:
            key: the partition.
            loss_allowed: whether its log may be opened although records are missing.
        """
        if self.extents is None:
            return Stop(
                was_clean=self.was_clean,
                recovery_point=self.recovery_points.get(key, 0),
                start_offset=self.start_offsets.get(key, 0),
                loss_allowed=loss_allowed,
            )
        extent = self.extents.get(key)
        if extent is None:
            # The others may still speak of an earlier topic of this name.
            return Stop(was_clean=self.was_clean, loss_allowed=loss_allowed)
        return Stop(
            was_clean=self.was_clean,
            recovery_point=extent.end_offset,
            start_offset=extent.start_offset,
            extent=extent,
            loss_allowed=loss_allowed,
        )


def read_last_stop(directory: Directory) -> LastStop:
    """Read what the last broker has left, and finish deletions that were cut short. Blocks.

    Whatever happens from now on is an unclean stop.

    Raises:
        OSError: the folder cannot be read or written.
    """
    names = directory.names()
    has_logs = any(partition_of(folder) for folder in directory.folders())
    was_clean = CLEAN_STOP_FILE in names or not has_logs
    if CLEAN_STOP_FILE in names:
        directory.remove(CLEAN_STOP_FILE)
        directory.sync()
    for folder in directory.folders():
        if is_deleted_name(folder):
            directory.remove_folder(folder)
    expected = {RECOVERY_POINT_FILE, START_OFFSET_FILE} if has_logs else set()
    if has_logs and EXTENT_FILE not in names and directory.is_durable:
        logger.warning(
            "there is no %s: what is missing of logs cannot be told at this start, unless offsets"
            " are missing between two segments",
            EXTENT_FILE,
        )
    for name in sorted(expected.difference(names)):
        logger.warning("there is no %s; %s counts in its place", name, EXTENT_FILE)
    return LastStop(
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
        logger.warning("%s is damaged and not used: %s", name, error)
    return None
