"""Whose data folder it is: asked before anything in it is changed."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...errors import ConfigError
from ..log import FolderDirectory
from ..log.files._checkpoint_files import CLEAN_STOP_FILE, partition_of
from ._database import DATABASE_NAME, Database, open_database

logger = logging.getLogger("trionet.broker")


def check_ownership(path: str) -> None:
    """Refuse partitions that no database of ours speaks of: all would be taken for deleted.

    Raises:
        ConfigError: the folder is a real Kafka's, or has lost its database.
        OSError: it cannot be read.
    """
    names = os.listdir(path)
    partitions = [name for name in names if partition_of(name) is not None]
    if not partitions:
        return
    if DATABASE_NAME not in names:
        raise ConfigError(
            f"{path} holds {len(partitions)} partitions, such as {min(partitions)}, and no"
            f" {DATABASE_NAME}: it is another broker's, or has lost its database; use an empty"
            " folder, or put the database back"
        )
    if not _size(path, DATABASE_NAME):
        raise ConfigError(
            f"{path} holds {len(partitions)} partitions, such as {min(partitions)}, and"
            f" {DATABASE_NAME} is empty: it has lost its content; put it back from a backup"
        )
    if CLEAN_STOP_FILE not in names and not _size(path, DATABASE_NAME + "-wal"):
        logger.warning(
            "%s-wal is %s after a stop that was not clean: what was committed last may be missing"
            " of topics, settings and the offsets of groups",
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
    """Open the database of a broker that is not running, and keep it from starting meanwhile.

    Args:
        path: the data folder; made if it is not there.

    Raises:
        ConfigError: the folder is in use, or another broker's.
        DatabaseError: the database cannot be opened.
        OSError: the folder cannot be used.
    """
    lock = FolderDirectory(path).lock()
    try:
        check_ownership(path)
        async with open_database(os.path.join(path, DATABASE_NAME)) as database:
            yield database
    finally:
        lock.release()
