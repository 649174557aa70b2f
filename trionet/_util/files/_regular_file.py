"""Reading files at untrusted paths, which may lead to devices, pipes or endless files."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

_PIECE_BYTES: Final = 64 * 1024
_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_KINDS: Final = (
    (stat.S_ISDIR, errno.EISDIR, "a directory"),
    (stat.S_ISFIFO, errno.EINVAL, "a pipe"),
    (stat.S_ISSOCK, errno.EINVAL, "a socket"),
    (stat.S_ISCHR, errno.EINVAL, "a device"),
    (stat.S_ISBLK, errno.EINVAL, "a device"),
)


def read_regular_file(
    path: str | os.PathLike[str], bytes_max: int, *, takes_pipes: bool = False
) -> bytes:
    """Read a whole file.

    Only regular files (and pipes, if ``takes_pipes``) are opened, because opening some devices has
    side effects, and reading some devices never ends. Reading some files in ``/proc`` never ends
    either, so the reported size of a file is not trusted.

    Args:
        path: the path of the file. Symbolic links are followed, and these rules apply to the
            target.
        bytes_max: the maximum size of the file, in bytes.
        takes_pipes: whether to read a pipe as well, until the writer closes it; for paths on the
            command line, where a shell substitutes ``<(command)``.

    Raises:
        OSError: the file cannot be read, is not regular, or is too large; ``strerror`` says why.
    """
    try:
        status = os.stat(path)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"not a path ({error})") from None
    if takes_pipes and stat.S_ISFIFO(status.st_mode):
        with open(path, "rb", buffering=0) as pipe:
            return _read_whole(pipe.fileno(), bytes_max, path)
    _check(status, bytes_max, path)
    descriptor = os.open(path, _FLAGS)
    try:
        _check(os.fstat(descriptor), bytes_max, path)  # the path may lead elsewhere by now
        return _read_whole(descriptor, bytes_max, path)
    finally:
        os.close(descriptor)


def check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Reject what is not a regular file.

    Raises:
        OSError: the status is that of something else; ``strerror`` says of what.
    """
    if not stat.S_ISREG(status.st_mode):
        for is_kind, number, name in _KINDS:
            if is_kind(status.st_mode):
                raise OSError(number, f"it is {name}, not a regular file", os.fspath(path))
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))


def _check(status: os.stat_result, bytes_max: int, path: str | os.PathLike[str]) -> None:
    check_regular(status, path)
    if status.st_size > bytes_max:
        raise _too_large(bytes_max, path)


def _read_whole(descriptor: int, bytes_max: int, path: str | os.PathLike[str]) -> bytes:
    data = bytearray()
    while piece := os.read(descriptor, min(_PIECE_BYTES, bytes_max + 1 - len(data))):
        data += piece
        if len(data) > bytes_max:
            raise _too_large(bytes_max, path)
    return bytes(data)


def _too_large(bytes_max: int, path: str | os.PathLike[str]) -> OSError:
    return OSError(
        errno.EFBIG, f"it is too large; at most {bytes_max} bytes are allowed", os.fspath(path)
    )
