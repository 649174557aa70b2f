"""Access to data directories, on the machine's file systems or, in tests, on a virtual disk."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import trio

from ..log import Directory, FolderDirectory
from ._database import DATABASE_NAME, Database, open_database
from ._folder_ownership import check_ownership


class Disk(Protocol):
    """A provider of data directories and their databases."""

    @property
    def is_virtual(self) -> bool:
        """Whether the disk uses no threads, so that it works in virtual time."""

    def directory(self, path: str) -> Directory:
        """Open a directory, creating it if needed."""

    async def check_ownership(self, path: str) -> None:
        """Reject another broker's directory; see :func:`._folder_ownership.check_ownership`."""

    def open_database(self, path: str) -> AbstractAsyncContextManager[Database]:
        """Open the database in a directory; see :func:`._database.open_database`."""


class SystemDisk:
    """The file systems of this machine."""

    is_virtual = False

    def directory(self, path: str) -> FolderDirectory:
        return FolderDirectory(path)

    async def check_ownership(self, path: str) -> None:
        await trio.to_thread.run_sync(check_ownership, path)

    def open_database(self, path: str) -> AbstractAsyncContextManager[Database]:
        return open_database(os.path.join(path, DATABASE_NAME))


SYSTEM_DISK = SystemDisk()
