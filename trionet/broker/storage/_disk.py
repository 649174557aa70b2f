"""Access to data directories, on the machine's file systems or, in tests, on a virtual disk.

A data directory that belongs to another broker is rejected before anything in it is changed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import trio

from ..._util._logging import get_logger
from ...errors import ConfigError
from ..log import Directory, FolderDirectory
from ..log.files._checkpoint_files import CLEAN_SHUTDOWN_FILE, partition_of
from ._database import DATABASE_NAME, Database, open_database, was_closed

logger = get_logger("trionet.broker")


class Disk(Protocol):
    """A provider of data directories and their databases."""

    @property
    def is_virtual(self) -> bool:
        """Whether the disk uses no threads, so that it works in virtual time."""

    def directory(self, path: str) -> Directory:
        """Open a directory, creating it if needed."""

    async def check_ownership(self, path: str) -> None:
        """Reject another broker's directory; see :func:`._disk.check_ownership`."""

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


def check_ownership(path: str) -> None:
    """Reject a directory that has partitions but no database; they would count as deleted.

    Raises:
        ConfigError: the directory belongs to another broker, or its database is missing or empty.
        OSError: the directory cannot be read.
    """
    names = os.listdir(path)
    partitions = [name for name in names if partition_of(name) is not None]
    if not partitions:
        return
    if DATABASE_NAME not in names:
        raise ConfigError(
            f"{path} has {len(partitions)} partitions, such as {min(partitions)}, but no"
            f" {DATABASE_NAME}: it belongs to another broker, or has lost its database; use an"
            " empty directory, or restore the database"
        )
    if not _size(path, DATABASE_NAME):
        is_file = os.path.isfile(os.path.join(path, DATABASE_NAME))
        raise ConfigError(
            f"{path} has {len(partitions)} partitions, such as {min(partitions)}, but"
            f" {DATABASE_NAME} is {'empty' if is_file else 'not a regular file'};"
            " restore it from a backup"
        )
    is_clean = CLEAN_SHUTDOWN_FILE in names or was_closed(os.path.join(path, DATABASE_NAME))
    if not is_clean and not _size(path, DATABASE_NAME + "-wal"):
        logger.warning(
            "%s-wal is %s after an unclean shutdown: the latest changes to topics, settings,"
            " group offsets and transactions may be lost",
            os.path.join(path, DATABASE_NAME),
            "empty" if DATABASE_NAME + "-wal" in names else "missing",
        )


def _size(path: str, name: str) -> int:
    try:
        return os.path.getsize(os.path.join(path, name))
    except FileNotFoundError:
        return 0


@asynccontextmanager
async def open_stopped(path: str) -> AsyncIterator[Database]:
    """Open a stopped broker's database, and prevent the broker from starting in the meantime.

    Args:
        path: the data directory, created if it does not exist.

    Raises:
        ConfigError: the directory is in use or belongs to another broker.
        DatabaseError: the database cannot be opened.
        OSError: the directory cannot be read or written.
    """
    lock = FolderDirectory(path).lock()
    try:
        check_ownership(path)
        async with open_database(os.path.join(path, DATABASE_NAME)) as database:
            yield database
    finally:
        lock.release()
