"""Writes the checkpoint files of a data directory: the start offset and recovery point of each log.

A crash could undo a start offset that was reported to a client before it was on disk, so callers
wait for the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import trio

from .._log import Log
from ..files._checkpoint_files import (
    RECOVERY_POINT_FILE,
    START_OFFSET_FILE,
    PartitionKey,
    encode_offsets,
)
from ..files._directory import Directory, run_blocking
from ..files._extents import EXTENT_FILE, encode_extents, extent_line

# By how much a file may grow and still be written on a full disk, so that records can be deleted to
# free space: a line for each of a few partitions, and less than a block.
GROWTH_BYTES = 512


class Checkpointing:
    """Writes the three checkpoint files of one data directory, one file at a time.

    Args:
        directory: the data directory.
        logs: a live view of all open logs.
    """

    def __init__(self, directory: Directory, logs: Mapping[PartitionKey, Log]) -> None:
        self._directory = directory
        self._logs = logs
        self._writing = trio.Lock()
        self._requested = self._written = 0
        self._stored: dict[str, frozenset[PartitionKey]] = {}
        self._lines: dict[PartitionKey, tuple[tuple[object, ...], bytes]] = {}

    def mentions(self, key: PartitionKey) -> bool:
        """Return whether a checkpoint file lists a partition, or may after the current write."""
        return any(key in keys for keys in self._stored.values())

    async def write_all(self) -> None:
        """Write all files; see :meth:`.LogFolder.write_checkpoints`."""
        async with self._writing:
            recovery_points = {key: log.stored_recovery_point for key, log in self._logs.items()}
            # First: a recovery point may lie after segments that are still being removed.
            await self._replace_start_offsets()
            await self._replace(
                RECOVERY_POINT_FILE, recovery_points, lambda: encode_offsets(recovery_points)
            )

    async def write_start_offsets(self) -> None:
        """Write the start offsets; see :meth:`.LogFolder.write_start_offsets`."""
        self._requested += 1
        asked = self._requested
        async with self._writing:
            if self._written < asked:
                await self._replace_start_offsets()

    async def _replace_start_offsets(self) -> None:
        covered = self._requested
        starts = {
            key: log.start_offset for key, log in self._logs.items() if log.starts_inside_segment
        }
        if self._directory.is_durable:
            # First, because it takes precedence; the others are for Kafka, and in case it is lost.
            lines = self._extent_lines()
            await self._replace(EXTENT_FILE, lines, lambda: encode_extents(lines.values()))
        await self._replace(START_OFFSET_FILE, starts, lambda: encode_offsets(starts))
        self._written = covered

    def _extent_lines(self) -> dict[PartitionKey, bytes]:
        """Return one line per log, reusing the lines of unchanged logs."""
        known, self._lines = self._lines, {}
        for key, log in self._logs.items():
            state = log.topic_id, log.start_offset, log.stored_recovery_point, log.leader_epoch
            before = known.get(key)
            if before is None or before[0] != state:
                before = state, extent_line(key, log.extent)
            self._lines[key] = before
        return {key: line for key, (_, line) in self._lines.items()}

    async def _replace(
        self, name: str, keys: Iterable[PartitionKey], encode: Callable[[], bytes]
    ) -> None:
        """Write a checkpoint file that lists the partitions ``keys``."""
        before = self._stored.get(name, frozenset())
        self._stored[name] = before.union(keys)
        await run_blocking(self._directory, self._encode_and_replace, name, encode)
        self._stored[name] = frozenset(keys)

    def _encode_and_replace(self, name: str, encode: Callable[[], bytes]) -> None:
        data = encode()
        self._directory.replace(name, data)
        try:
            self._directory.reserve(name, len(data) + GROWTH_BYTES)
        except OSError:
            # The disk is full: the next write uses what space there is.
            pass
