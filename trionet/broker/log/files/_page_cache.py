"""Announces to the kernel which files the next logs need.

Opening a log after a clean shutdown takes a third of a millisecond, plus half a dozen reads of a
few bytes from as many files. After a reboot, each of these reads waits for the disk in turn. More
threads would overlap the waits, but lose more time competing for the GIL. Instead, the kernel is
notified in advance of the files that the next logs need, and reads them in parallel.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...._util.files._log_file import OPEN_FLAGS, log_file
from ...._util.files._page_cache import is_page_cached
from ._checkpoint_files import PARTITION_FILE

# Of each file, no more than this: what is read is small, or the start of a file.
_BYTES_MAX = 65536
# Of these, opening a log reads the newest; the names rise with the offsets.
_SEGMENT_SUFFIXES = ("log", "index", "timeindex", "snapshot")


def read_ahead(path: str, folders: Iterable[str]) -> None:
    """Start reading the files needed to open the logs in the given directories.

    Does nothing if the first directory's files appear to be in the page cache, or if the system
    does not support read-ahead hints. Never raises: opening the log reports any error. Blocks while
    it lists the directories.

    Args:
        path: the data directory.
        folders: the names of partition directories in ``path``.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for number, folder in enumerate(folders):
        at = os.path.join(path, folder)
        try:
            if not number and _is_cached(os.path.join(at, PARTITION_FILE)):
                return
            for name in _files_to_read(os.listdir(at)):
                _start_reading(os.path.join(at, name))
        except OSError:
            continue


def _is_cached(path: str) -> bool:
    return is_page_cached(log_file(os.open(path, os.O_RDONLY | OPEN_FLAGS)), 0)


def _files_to_read(names: list[str]) -> Iterable[str]:
    newest: dict[str, str] = {}
    for name in names:
        _, _, suffix = name.rpartition(".")
        kind = suffix if suffix in _SEGMENT_SUFFIXES else name
        newest[kind] = max(name, newest.get(kind, ""))
    return newest.values()


def _start_reading(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | OPEN_FLAGS)
    try:
        os.posix_fadvise(descriptor, 0, _BYTES_MAX, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(descriptor)
