"""The file whose lock keeps a folder to one process."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Final

from ._descriptors import lock_descriptor
from ._log_file import LogFile

PRIVATE: Final = 0o600
"""A process that can open a file, even only for reading, can lock it, and keep a broker from
starting."""


def lock_file(path: str, open_file: Callable[[], LogFile]) -> LogFile:
    """Lock a file that only its owner can open. The lock lasts until the file is closed.

    A file that others can open, as earlier versions created it, is replaced once it is locked:
    changing its mode would not help against those who have it open.

    Args:
        path: the path of the file.
        open_file: opens it for reading and writing, or creates it with the mode :data:`PRIVATE`.

    Raises:
        BlockingIOError: the lock is held.
        OSError: the file cannot be opened, locked or replaced.
    """
    is_replaced = os.name == "nt"  # which has no modes
    while True:
        file = open_file()
        try:
            lock_descriptor(file.fileno())
        except OSError as error:  # such as one of a file system without locks
            error.filename = path
            raise
        if not _is_at(path, file):
            continue  # another broker has replaced it
        # Once: some file systems have the same mode for all files.
        if is_replaced or not os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return file
        os.unlink(path)
        is_replaced = True


def _is_at(path: str, file: LogFile) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
