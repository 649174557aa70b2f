"""What file descriptors can do that differs by platform: limits, locks, and flushing to disk."""

from __future__ import annotations

import errno
import os
import sys

if sys.platform == "win32":
    import msvcrt

    def descriptor_limit() -> int:
        return sys.maxsize

    def raise_descriptor_limit() -> None:
        pass

    def lock_descriptor(descriptor: int) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(error.errno, error.strerror) from error

    def unlock_descriptor(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl
    import resource

    def descriptor_limit() -> int:
        """Return the process's limit on file descriptors; ``sys.maxsize`` if there is none."""
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return sys.maxsize if soft == resource.RLIM_INFINITY else soft

    def raise_descriptor_limit() -> None:
        """Raise the limit on open file descriptors to the hard limit, as Java does."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            pass  # keep the current limit; the acceptor logs when it is reached

    def lock_descriptor(descriptor: int) -> None:
        """Lock a file for this process.

        Raises:
            BlockingIOError: another descriptor holds the lock, in this process or another.
            OSError: the file system has no locks.
        """
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def unlock_descriptor(descriptor: int) -> None:
        """Release the lock of a file."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


if sys.platform == "darwin":

    def sync_descriptor(descriptor: int) -> None:
        # On macOS, fsync leaves the bytes in the drive's cache.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)

elif hasattr(os, "fdatasync"):

    def sync_descriptor(descriptor: int) -> None:
        # Also writes a size that has grown; it only skips times and the like.
        os.fdatasync(descriptor)

else:

    def sync_descriptor(descriptor: int) -> None:
        """Wait until everything that was written to a file is on disk. Blocks."""
        os.fsync(descriptor)


def sync_folder(path: str) -> None:
    """Wait until the names in a folder are on disk. Blocks."""
    if sys.platform == "win32":
        return  # NTFS journals names, and a folder cannot be opened for syncing there
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        # Connections may have taken the last descriptor, and a broker must not end because of them.
        # Linux's sync() needs none, and waits as fsync() does; on other systems it does not wait.
        if sys.platform != "linux" or error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        os.sync()
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
