"""Writing the checkpoint files of a data folder: where each log starts, what of it is on the disk.

What is told to a client before it is in a file would be taken back by a crash, so the callers wait.
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
from ..files._directory import Directory
from ..files._extents import EXTENT_FILE, encode_extents, extent_line
from ..files._threads import run_blocking

# What a file may grow by and still be written on a full disk, so that deleting records makes room:
# a line for each of a few partitions, and not a block more than there is.
GROWTH_BYTES = 512


class Checkpointing:
    """The three files of one folder, written one at a time.

    Args:
        directory: the data folder.
        logs: all open logs; the present ones are looked at each time.
    """

    def __init__(self, directory: Directory, logs: Mapping[PartitionKey, Log]) -> None:
        self._directory = directory
        self._logs = logs
        self._writing = trio.Lock()
        self._asked = self._written = 0
        self._stored: dict[str, frozenset[PartitionKey]] = {}
        self._lines: dict[PartitionKey, tuple[tuple[object, ...], bytes]] = {}

    def speak_of(self, key: PartitionKey) -> bool:
        """Whether a file holds an offset of a partition of this name, or may just be getting it."""
        return any(key in keys for keys in self._stored.values())

    async def write_all(self) -> None:
        """Write all of them; see :meth:`.LogFolder.write_checkpoints`."""
        async with self._writing:
            recovery_points = {key: log.stored_recovery_point for key, log in self._logs.items()}
            # First: a recovery point may lie behind segments that are only being removed.
            await self._replace_start_offsets()
            await self._replace(
                RECOVERY_POINT_FILE, recovery_points, lambda: encode_offsets(recovery_points)
            )

    async def write_start_offsets(self) -> None:
        """Write where the logs start; see :meth:`.LogFolder.write_start_offsets`."""
        self._asked += 1
        asked = self._asked
        async with self._writing:
            if self._written < asked:
                await self._replace_start_offsets()

    async def _replace_start_offsets(self) -> None:
        covered = self._asked
        starts = {
            key: log.start_offset for key, log in self._logs.items() if log.starts_inside_segment
        }
        if self._directory.is_durable:
            # First, because it is what counts; the others are for Kafka, and for when it is gone.
            lines = self._extent_lines()
            await self._replace(EXTENT_FILE, lines, lambda: encode_extents(lines.values()))
        await self._replace(START_OFFSET_FILE, starts, lambda: encode_offsets(starts))
        self._written = covered

    def _extent_lines(self) -> dict[PartitionKey, bytes]:
        """A line of each log; those of logs that have not changed are at hand."""
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
        """Write one file, which speaks of ``keys``."""
        before = self._stored.get(name, frozenset())
        self._stored[name] = before.union(keys)
        await run_blocking(self._directory, self._encode_and_replace, name, encode)
        self._stored[name] = frozenset(keys)

    def _encode_and_replace(self, name: str, encode: Callable[[], bytes]) -> None:
        data = encode()
        self._directory.replace(name, data)
        try:
            self._directory.keep_room(name, len(data) + GROWTH_BYTES)
        except OSError:
            # The disk is full: the next writing takes what there is.
            pass
