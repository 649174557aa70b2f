"""Removes the directories of deleted partitions (Kafka: LogManager.deleteLogs).

Deleting a partition only renames its directory, which is fast. A thread then removes the files,
which may be many gigabytes. If the removal fails or is interrupted, the next startup completes it.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial

import trio

from ..files._directory import Directory

logger = logging.getLogger("trionet.broker.log")

# How many directories one call in a thread removes; a shutdown waits for its end.
REMOVED_AT_ONCE = 20


class DeletedFolders:
    """The renamed directories of deleted partitions that have yet to be removed.

    Args:
        directory: the data directory.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._names: deque[str] = deque()
        self._is_removing = False

    def add(self, name: str, nursery: trio.Nursery) -> None:
        """Schedule a directory for removal by a task in ``nursery``, in a thread."""
        self._names.append(name)
        if not self._is_removing:
            self._is_removing = True
            nursery.start_soon(self._remove_all, name="remove deleted partitions")

    def remove_now(self, folder: Directory, name: str) -> None:
        """Rename the directory of a partition that is not open, and remove it. Blocks."""
        folder.move_to(name)
        self._directory.sync()
        self._directory.remove_folder(name)

    async def _remove_all(self) -> None:
        """Remove all directories in one task, since a topic may have ten thousand partitions."""
        names = self._names
        try:
            while names:
                some = [names.popleft() for _ in range(min(REMOVED_AT_ONCE, len(names)))]
                # In memory too: freeing a gigabyte of pages takes a tenth of a second.
                await self._directory.in_thread(partial(self._remove, some))
        finally:
            self._is_removing = False

    def _remove(self, names: list[str]) -> None:
        try:
            # The new names first: a power failure must not give the records to a later topic.
            self._directory.sync()
        except OSError as error:
            logger.warning(
                "could not remove %d deleted partitions; the next startup will retry: %s",
                len(names),
                error,
            )
            return
        for name in names:
            try:
                self._directory.remove_folder(name)
            except OSError as error:
                logger.warning("could not remove %s; the next startup will retry: %s", name, error)
