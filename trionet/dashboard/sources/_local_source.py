"""The connection to the local socket of a broker on this machine, if it has one.

A trionet broker serves its inside there to the same user without any settings; see
:mod:`trionet.net._local_socket`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from ...errors import TrionetError
from ...net._local_socket import is_own_peer, is_this_machine, paths_for
from ._http_client import HttpClient

#: The reason shown for data that is not available over the Kafka protocol.
NO_METRICS: Final = (
    "not available over the Kafka protocol; a trionet broker on this machine shows it to its own"
    " user, any other one by its metrics listener: --metrics URL"
)
_JAFKA: Final = "jafka"
_KAFKA: Final = "kafka"
# What an attempt to connect raises if no server of this user is there.
_NOT_THERE: Final = (FileNotFoundError, NotADirectoryError, PermissionError, ConnectionError)


class NoLocalSocketError(TrionetError):
    """Raised when no broker of this user and this machine has a local socket at the address."""

    def __init__(self) -> None:
        super().__init__(NO_METRICS)


def local_client(bootstrap_servers: str, *, is_jafka: bool) -> HttpClient | None:
    """Return a client for the local socket of a broker; None for a broker on another machine.

    The broker, and its socket, may come and go later.

    Args:
        bootstrap_servers: the addresses of the broker, of which the first one counts.
        is_jafka: whether it is a Jafka broker; see :func:`has_jafka`.
    """
    host, port = _first_of(bootstrap_servers)
    kind = _JAFKA if is_jafka else _KAFKA
    if not is_this_machine(host):
        return None
    return HttpClient("http://localhost:1", connect=partial(_connect, kind, host, port))


async def has_jafka(bootstrap_servers: str) -> bool:
    """Return whether a Jafka broker serves its inside on a local socket, which it must by now.

    Only a connection to one of this user's counts. Whatever else fails leaves it a Kafka broker.
    """
    try:
        stream = await _connect(_JAFKA, *_first_of(bootstrap_servers))
    except (NoLocalSocketError, OSError):
        return False
    with stream.socket:
        return True


async def _connect(kind: str, host: str, port: int) -> trio.SocketStream:
    """Connect to the socket of a server.

    Raises:
        NoLocalSocketError: there is none.
        OSError: it cannot be used.
    """
    await trio.lowlevel.checkpoint()
    for path in paths_for(kind, host, port):
        try:
            stream = await trio.open_unix_socket(path)
        except _NOT_THERE:
            continue
        if is_own_peer(stream.socket):
            return stream
        await trio.aclose_forcefully(stream)
    raise NoLocalSocketError


def _first_of(bootstrap_servers: str) -> tuple[str, int]:
    """Return the host and the port of the first address; port 0 if they are not valid."""
    host, _, port = bootstrap_servers.partition(",")[0].strip().rpartition(":")
    return host.strip("[]"), int(port) if port.isascii() and port.isdigit() else 0
