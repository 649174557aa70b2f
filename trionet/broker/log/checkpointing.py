"""Writing the checkpoint files of a data folder: where each log starts, what of it is on the disk.

What is told to a client before it is in a file would be taken back by a crash, so the callers wait.
"""

from __future__ import annotations

from collections.abc import Mapping

import trio

from .checkpoints import RECOVERY_POINT_FILE, START_OFFSET_FILE, PartitionKey, encode_offsets
from .directory import Directory
from .log import Log
from .threads import run_blocking


class Checkpointing:
    """The two files of one folder, written one at a time.

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

    def speak_of(self, key: PartitionKey) -> bool:
        """Whether a file holds an offset of a partition of this name, or may just be getting it."""
        return any(key in keys for keys in self._stored.values())

    async def write_all(self) -> None:
        """Write both files; see :meth:`.LogFolder.write_checkpoints`."""
        async with self._writing:
            recovery_points = {key: log.stored_recovery_point for key, log in self._logs.items()}
            # First: a recovery point may lie behind segments that are only being removed.
            await self._replace_start_offsets()
            await self._replace(RECOVERY_POINT_FILE, recovery_points)

    async def write_start_offsets(self) -> None:
        """Write the start offsets alone; see :meth:`.LogFolder.write_start_offsets`."""
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
        await self._replace(START_OFFSET_FILE, starts)
        self._written = covered

    async def _replace(self, name: str, offsets: dict[PartitionKey, int]) -> None:
        before = self._stored.get(name, frozenset())
        self._stored[name] = before.union(offsets)
        await run_blocking(self._directory, self._encode_and_replace, name, offsets)
        self._stored[name] = frozenset(offsets)

    def _encode_and_replace(self, name: str, offsets: dict[PartitionKey, int]) -> None:
        self._directory.replace(name, encode_offsets(offsets))
