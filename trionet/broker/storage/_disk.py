"""Where data folders are: the system's disks, or what takes their place in virtual time."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import trio

from ..log import Directory, FolderDirectory
from ._database import DATABASE_NAME, Database, open_database
from ._folder_ownership import check_ownership


class Disk(Protocol):
    """Gives data folders, and the database in each."""

    @property
    def is_virtual(self) -> bool:
        """It can be used in virtual time: no thread takes part."""

    def directory(self, path: str) -> Directory:
        """The folder, made if it is missing."""

    async def check_ownership(self, path: str) -> None:
        """See :func:`._folder_ownership.check_ownership`."""

    def open_database(self, path: str) -> AbstractAsyncContextManager[Database]:
        """The database in a folder; see :func:`._database.open_database`."""


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
