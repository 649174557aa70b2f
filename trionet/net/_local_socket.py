"""Unix sockets by which a server shows its inside to other processes of the same user.

The problem: who runs a broker and a dashboard side by side wants to see everything without
settings, but no other user of the machine may, and nothing new may listen on the network.

The choice: a Unix socket for each TCP address that the server listens on, in the user's runtime
folder, named by the address, so that a client that knows the address finds it. Three locks: the
folder is the user's own with mode 0700, the socket has mode 0600, and both sides check the user at
the other end, so that nothing depends on who may write to the folder's parent. A socket is bound
under another name, and renamed once it listens: a client finds one that works or none. The rename
replaces what is there, since the process that has bound the TCP address owns its name: the file is
that of a killed server, or of one that has closed its port and still sends its last responses.

Rejected: a file with the address and token of a TCP port (a port more, and a secret on disk), and
Linux's abstract sockets (any user can take the name).
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
import struct
import sys
import tempfile
from types import TracebackType
from typing import Final, Self

import trio

from .wire._endpoint import Endpoint, plain_address

#: Whether this system has Unix sockets, and says who is at the other end.
IS_SUPPORTED: Final = sys.platform != "win32"
_BACKLOG: Final = 16
#: The number of files in a folder above which those of killed servers are removed.
FILES_MAX: Final = 64
_SUFFIX: Final = ".sock"
_IS_LINUX: Final = sys.platform == "linux"
#: The longest path of a Unix socket: struct sockaddr_un has room for it and a zero byte.
PATH_BYTES_MAX: Final = 107 if _IS_LINUX else 103
#: Stand for every IPv4 address of the machine, and for every address.
_WILDCARD: Final = "0.0.0.0"  # noqa: S104 - a part of a name, not bound
_WILDCARD_V6: Final = "::"
_LOCALHOST: Final = ("127.0.0.1", "::1")
_GROUP_OR_OTHERS: Final = 0o077
_WRITABLE_BY_OTHERS: Final = 0o022
# Of macOS and FreeBSD: struct xucred begins with its version and the effective user id.
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_XUCRED: Final = "II"
_XUCRED_BYTES: Final = 76
_UCRED: Final = "3i"  # of Linux: process, user and group


class LocalSocket:
    """A listening Unix socket in the user's runtime folder; a context manager that removes it.

    Args:
        kind: what is served there, such as ``kafka``.
        endpoint: the bound address of the server; see :func:`is_local`.

    Attributes:
        path: the path of the socket.
        sock: the socket, in non-blocking mode.

    Raises:
        OSError: there is no folder for it, its path is too long, or the folder or the file is not
            to be trusted.
    """

    def __init__(self, kind: str, endpoint: Endpoint) -> None:
        folder = _folders()[0]
        _make_folder(folder)
        self.path = os.path.join(folder, _name(kind, endpoint.host, endpoint.port))
        hidden = f"{self.path}.{os.getpid()}"
        _check_replaceable(self.path)
        _check_length(hidden)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _unlink(hidden)  # of a process that was killed here, whose id is ours now
            if _IS_LINUX:
                os.fchmod(self.sock.fileno(), 0o600)  # what bind() makes has this mode at once
            self.sock.bind(hidden)
            os.chmod(hidden, 0o600)
            self._file = _identity(hidden)
            self.sock.setblocking(False)
            self.sock.listen(_BACKLOG)
            os.rename(hidden, self.path)
        except BaseException:
            self.sock.close()
            _unlink(hidden)
            raise

    def close(self) -> None:
        """Remove the file, unless it is another server's by now, and close the socket."""
        try:
            if _identity(self.path) == self._file:
                os.unlink(self.path)
        except OSError:
            pass  # it is gone, or the folder is
        self.sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def is_local(endpoint: Endpoint) -> bool:
    """Return whether clients on this machine reach an endpoint by a loopback address."""
    return endpoint.is_wildcard or _is_loopback(endpoint.host)


def is_this_machine(host: str) -> bool:
    """Return whether a host, as a client knows it, is one whose servers may have sockets here."""
    return IS_SUPPORTED and _is_loopback(host)


def paths_for(kind: str, host: str, port: int) -> list[str]:
    """Return where the socket of a server may be, in the order in which to try.

    Another user may have made a folder of our name, and a link in it to a socket of ours, so a
    folder counts only if it is safe.

    Args:
        kind: what the server serves there; see :class:`LocalSocket`.
        host: the host of the server as a client knows it.
        port: its port.

    Returns:
        No path if the host is another machine, the system has no Unix sockets, or no server has
        made a folder yet.
    """
    if not is_this_machine(host):
        return []
    hosts = _LOCALHOST if host.lower() == "localhost" else (host,)
    # Two servers may share a port if one has IPv4 and the other IPv6 alone.
    is_ipv6 = ":" in plain_address(hosts[0])
    wildcards = (_WILDCARD_V6,) if is_ipv6 else (_WILDCARD, _WILDCARD_V6)
    names = [_name(kind, each, port) for each in (*hosts, *wildcards)]
    folders = filter(_is_safe, _folders())
    paths = [os.path.join(folder, name) for folder in folders for name in names]
    return [path for path in paths if len(os.fsencode(path)) <= PATH_BYTES_MAX]


def is_own_peer(sock: trio.socket.SocketType) -> bool:
    """Return whether the process at the other end of a Unix socket is the same user's."""
    return IS_SUPPORTED and _peer_uid(sock) == os.geteuid()


def _peer_uid(sock: trio.socket.SocketType) -> int | None:
    """Return the user of the process at the other end; None if the system does not say."""
    try:
        if _IS_LINUX:
            data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_UCRED))
            return int(struct.unpack(_UCRED, data)[1])
        data = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        return int(struct.unpack_from(_XUCRED, data)[1])
    except (OSError, struct.error):
        return None


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(plain_address(host)).is_loopback
    except ValueError:
        return False


def _name(kind: str, host: str, port: int) -> str:
    if host.lower() == "localhost":
        host = _LOCALHOST[0]  # where a server that is given this name listens
    elif not host:
        host = _WILDCARD_V6
    return f"{kind}-{plain_address(host)}:{port}{_SUFFIX}"


def _folders() -> list[str]:
    """Return the folders for the user's sockets, the preferred one first.

    Processes of one user may differ in what their environment says, so a client tries all of them.
    """
    uid = os.geteuid()
    runtime = (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}")
    found = [os.path.join(folder, "trionet") for folder in runtime if _is_private(folder)]
    found.append(os.path.join(tempfile.gettempdir(), f"trionet-{uid}"))
    return list(dict.fromkeys(found))


def _is_private(folder: str) -> bool:
    """Return whether a folder is the user's own, and no other user may write to it."""
    # After `su`, XDG_RUNTIME_DIR is that of another user.
    if not os.path.isabs(folder):
        return False
    try:
        found = os.stat(folder)
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not found.st_mode & _WRITABLE_BY_OTHERS
    )


def _make_folder(folder: str) -> None:
    """Make the folder if it is not there, and check it.

    Raises:
        OSError: it cannot be made, or is not a folder that only this user may use.
    """
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    _check_folder(folder)
    _sweep(folder)


def _is_safe(folder: str) -> bool:
    try:
        _check_folder(folder)
    except OSError:
        return False
    return True


def _check_folder(folder: str) -> None:
    """Check that a path is a folder that only this user may use.

    Raises:
        OSError: it is not, or is not there.
    """
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a folder, and links are not followed", folder)
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"the folder belongs to user {found.st_uid}", folder)
    if found.st_mode & _GROUP_OR_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(errno.EPERM, f"the folder has mode {mode:o}, not 700", folder)


def _sweep(folder: str) -> None:
    """Remove the sockets of killed servers once there are many, such as those of killed tests."""
    names = os.listdir(folder)
    if len(names) <= FILES_MAX:
        return
    for name in names:
        path = os.path.join(folder, name)
        if _is_left(path):
            _unlink(path)


def _is_left(path: str) -> bool:
    """Return whether a file is what a killed server has left."""
    if path.endswith(_SUFFIX):
        return not is_served(path)
    # One that was killed before it renamed its socket. A running one may not listen yet.
    name, _, process = path.rpartition(".")
    return name.endswith(_SUFFIX) and process.isdecimal() and not _is_running(int(process))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it is another user's
    return True


def _check_replaceable(path: str) -> None:
    """Check that nothing is at a path but perhaps a socket, which its server needs no more.

    Raises:
        OSError: the file is no socket.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "not a socket, and links are not followed", path)


def _check_length(path: str) -> None:
    """Check that a socket can be bound to a path.

    Raises:
        OSError: it is too long.
    """
    length = len(os.fsencode(path))
    if length > PATH_BYTES_MAX:
        raise OSError(
            errno.ENAMETOOLONG,
            f"the path has {length} bytes, and a Unix socket's may have {PATH_BYTES_MAX}; set"
            " XDG_RUNTIME_DIR to a folder of yours with a shorter path, for `trionet dashboard` as"
            " well",
            path,
        )


def is_served(path: str) -> bool:
    """Return whether a server listens at a path, or may do so."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a full backlog must not hold up the loop
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True


def _identity(path: str) -> tuple[int, int, int]:
    found = os.lstat(path)
    # With its time, since the number of a file that was replaced is given to a later one.
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
