"""Access to data folders: on the system's file systems, or on a replacement in virtual time."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import trio

from ..log import Directory, FolderDirectory
from ._database import DATABASE_NAME, Database, open_database
from ._folder_ownership import check_ownership


class Disk(Protocol):
    """Provides data folders and the database in each of them."""

    @property
    def is_virtual(self) -> bool:
        """Whether this disk uses no threads, so that it works in virtual time."""

    def directory(self, path: str) -> Directory:
        """Open a folder, creating it if needed."""

    async def check_ownership(self, path: str) -> None:
        """Reject the folder of another broker; see :func:`._folder_ownership.check_ownership`."""

    def open_database(self, path: str) -> AbstractAsyncContextManager[Database]:
        """Open the database in a folder; see :func:`._database.open_database`."""


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
