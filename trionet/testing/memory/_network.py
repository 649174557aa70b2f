"""A network in memory, with a clock and dice of its own: everything on it can be had again.

No thread and no socket of the system takes part, so that it runs under trio's ``MockClock``, where
a wait costs nothing. One seed gives one course of events.
"""

from __future__ import annotations

import errno
import random
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import attrs
import trio

from ...net.wire._connecting import IPV6_PARTS, Address
from ...net.wire._endpoint import Endpoint
from ...net.wire._readiness import WRITE, ReadinessKind
from ._listening_socket import ListeningMemorySocket
from ._readiness import MemoryReadiness
from ._socket import MemorySocket, os_error
from ._stream import MemoryStream, wait_ready
from ._transport import MemoryTransport

EPOCH_MS = 1_704_067_200_000
"""What time it is when the loop's clock says 0: the beginning of 2024."""

# Ports that are given to those who ask for any: to listen on, and to connect from.
_FIRST_LISTENING_PORT = 20_000
_FIRST_LOCAL_PORT = 32_768

_LOOPBACK = {False: "127.0.0.1", True: "::1"}
_LOOPBACK_NAMES = {"localhost": _LOOPBACK[False]}
_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - recognised, not bound


@attrs.define(kw_only=True)
class NetworkFaults:
    """What goes wrong by itself on a network in memory; may be changed at any time.

    Attributes:
        delay_seconds: how long bytes are on their way, at least and at most. What one side of a
            connection sends arrives in its order all the same.
        short_share: the share of reads and writes that take only a part, 0 to 1.
        reset_share: the share of writes that break their connection off, 0 to 1.
    """

    delay_seconds: tuple[float, float] = (0.0, 0.0)
    short_share: float = 0.0
    reset_share: float = 0.0


@attrs.frozen
class NetworkEvent:
    """Something that happened on the network, for those who watch it.

    Attributes:
        at: when, in seconds of the loop's clock.
        what: ``connect``, ``accept``, ``refuse``, ``send``, ``receive``, ``end``, ``reset``,
            ``break``, ``vanish`` or ``close``.
        local: the address of the socket it happened to, as in ``127.0.0.1:9092``.
        remote: the address of its peer.
        data: what was sent or received.
    """

    at: float
    what: str
    local: str
    remote: str
    data: bytes = b""


class MemoryNetwork:
    """Hosts and the connections between them, in place of the system's network.

    Give it to :func:`trionet.open_broker` or :func:`trionet.serve`, and connect to what they serve
    with :meth:`open_stream`. Any IP address is a host of it.

    Args:
        seed: of all ids and faults.
        faults: what goes wrong by itself; nothing by default.
        epoch_ms: the time of day when the loop's clock says 0, in milliseconds since the epoch.
        trace: called with everything that happens.

    Attributes:
        faults: see above.
        chance: what ids are drawn from.
    """

    is_virtual = True

    def __init__(
        self,
        seed: int = 0,
        *,
        faults: NetworkFaults | None = None,
        epoch_ms: int = EPOCH_MS,
        trace: Callable[[NetworkEvent], None] | None = None,
    ) -> None:
        self.faults = faults or NetworkFaults()
        self.chance = random.Random(f"ids {seed}")  # noqa: S311 - to be had again
        self.shuffle = random.Random(f"order {seed}").shuffle  # noqa: S311
        self._dice = random.Random(f"faults {seed}")  # noqa: S311
        self._epoch_ms = epoch_ms
        self._trace = trace
        self._sockets: dict[int, MemorySocket] = {}
        self._listening: dict[tuple[str, int], ListeningMemorySocket] = {}
        self._separated: list[tuple[frozenset[str], frozenset[str]]] = []
        self._waiting: list[tuple[MemorySocket, Address]] = []  # connects that nobody answers yet
        self._number = 0
        self._listening_port = _FIRST_LISTENING_PORT
        self._local_port = _FIRST_LOCAL_PORT

    # What users do.

    async def open_stream(self, address: str, *, local_host: str | None = None) -> MemoryStream:
        """Connect, as :func:`trio.open_tcp_stream` does.

        Args:
            address: ``host:port``, as a broker's ``bootstrap_servers``.
            local_host: the address to connect from; that of this host by default.

        Raises:
            OSError: the address is none, or nobody listens there.

        Cancellation: there is no connection.
        """
        host, _, port = address.rpartition(":")
        [target, *_] = await self.resolve(host.strip("[]"), int(port))
        sock = self._new_socket(local_host or _LOOPBACK[len(target) == IPV6_PARTS], None)
        try:
            sock.connect_ex(target)
            await wait_ready(sock, WRITE)
            failure = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failure:
                raise OSError(failure, f"cannot connect to {address}: {os_error(failure).strerror}")
        except BaseException:
            sock.close()
            raise
        return MemoryStream(sock)

    @property
    def open_sockets(self) -> list[MemorySocket]:
        """The sockets that are not closed, listening ones aside."""
        return list(self._sockets.values())

    @property
    def listening(self) -> list[str]:
        """Where somebody listens, as ``host:port``."""
        return [f"{host}:{port}" for host, port in self._listening]

    def separate(self, hosts: Iterable[str], others: Iterable[str]) -> None:
        """Let nothing pass between these hosts and those, until :meth:`heal`.

        What is on its way then, and what is sent meanwhile, arrives afterwards; connecting waits.
        """
        self._separated.append((frozenset(hosts), frozenset(others)))
        for sock in self._sockets.values():
            if sock.peer is not None and self._is_separated(sock.host, sock.peer.host):
                sock.incoming.hold()

    def heal(self) -> None:
        """Let everything pass again."""
        self._separated.clear()
        for sock in list(self._sockets.values()):
            if sock.incoming.is_held:
                sock.incoming.let_go(self.arrival())
                sock.notify()
        waiting, self._waiting = self._waiting, []
        for sock, address in waiting:
            self._connect(sock, address)

    def break_off(self, sock: MemorySocket) -> None:
        """Reset a connection from between its ends: both find it broken."""
        self.note("break", sock)
        sock.break_off()
        if sock.peer is not None and sock.peer.is_open:
            sock.peer.break_off()

    def kill_host(self, host: str, *, is_silent: bool = False) -> None:
        """Close everything that a host has open, as a kernel does for a process that is killed.

        Args:
            host: its address.
            is_silent: as if its power failed: peers hear of it only when they send.
        """
        for listening in [each for at, each in self._listening.items() if at[0] == host]:
            listening.close()
        for sock in [each for each in self._sockets.values() if each.host == host]:
            if is_silent:
                sock.vanish()
            else:
                sock.close()

    # What trionet does: see trionet.net._network.Network.

    def now_ms(self) -> int:
        return self._epoch_ms + int(trio.current_time() * 1000)

    def listen(
        self,
        endpoint: Endpoint,
        *,
        backlog: int,
        receive_buffer_bytes: int,  # noqa: ARG002 - every socket sets its own
    ) -> ListeningMemorySocket:
        host = (
            "" if endpoint.host in _WILDCARDS else _LOOPBACK_NAMES.get(endpoint.host, endpoint.host)
        )
        port = endpoint.port
        while not port or (not endpoint.port and (host, port) in self._listening):
            port = self._listening_port
            self._listening_port += 1
        if (host, port) in self._listening:
            raise OSError(errno.EADDRINUSE, f"cannot listen on {endpoint}: Address already in use")
        address = (host or _LOOPBACK[False], port)
        listening = self._listening[host, port] = ListeningMemorySocket(self, address, backlog)
        return listening

    async def wait_acceptable(self, listening: ListeningMemorySocket) -> None:
        """Wait until a listening socket of this network may have a connection."""
        await trio.lowlevel.checkpoint()
        while listening.is_open and listening.next_arrival > trio.current_time():
            with trio.CancelScope(deadline=listening.next_arrival):
                await listening.changed.wait()

    @asynccontextmanager
    async def open_readiness(self, kind: ReadinessKind | None) -> AsyncIterator[MemoryReadiness]:
        """A readiness backend for the sockets of this network.

        Raises:
            ValueError: ``kind`` is not None; there is one kind.
        """
        if kind is not None:
            raise ValueError(f"readiness {kind!r} does not exist on a network in memory")
        await trio.lowlevel.checkpoint()
        yield MemoryReadiness(self._sockets)

    def transport(
        self,
        sock: MemorySocket,
        tls_context: ssl.SSLContext | None = None,
        server_name: str | None = None,  # noqa: ARG002 - it is for TLS alone
    ) -> MemoryTransport:
        if tls_context is not None:
            raise ValueError("there is no TLS on a network in memory")
        return MemoryTransport(sock)

    async def resolve(self, host: str, port: int) -> list[Address]:
        """The addresses of a host, which is localhost or a numeric address.

        Raises:
            OSError: it is another name.
        """
        await trio.lowlevel.checkpoint()
        host = _LOOPBACK_NAMES.get(host, host)
        try:
            found = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except OSError as error:
            raise OSError(
                f"{host} has no address: on a network in memory only localhost has a name"
            ) from error
        return [(str(address[0]), port) for *_, address in found]

    def open_socket(
        self, address: Address, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1
    ) -> MemorySocket:
        sock = self._new_socket(_LOOPBACK[":" in address[0]], None)
        if send_buffer_bytes != -1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        if receive_buffer_bytes != -1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        return sock

    # What its sockets do.

    def begin_connect(self, sock: MemorySocket, address: Address) -> None:
        self.note("connect", sock)
        self._connect(sock, address)

    def _connect(self, sock: MemorySocket, address: Address) -> None:
        if not sock.is_open:
            return
        host, port = address[0], address[1]
        if self._is_separated(sock.host, host):
            self._waiting.append((sock, address))
            return
        listening = self._listening.get((host, port)) or self._listening.get(("", port))
        at = self.arrival()
        if listening is None:
            self.note("refuse", sock)
            sock.refuse(at + self.delay())
        elif not listening.has_room:
            self._waiting.append((sock, address))
        else:
            accepted = self._new_socket(host, port)
            accepted.pair_with(sock)
            sock.pair_with(accepted)
            listening.add(accepted, at)
            sock.accepted(at + self.delay())

    def retry_connects(self) -> None:
        """There is room in the queue of a listening socket."""
        waiting, self._waiting = self._waiting, []
        for sock, address in waiting:
            self._connect(sock, address)

    def forget(self, sock: MemorySocket) -> None:
        """A socket was closed."""
        self._sockets.pop(sock.number, None)

    def forget_listener(self, listening: ListeningMemorySocket) -> None:
        """A listening socket was closed; who waits for it is refused."""
        for place, each in list(self._listening.items()):
            if each is listening:
                del self._listening[place]
        self.retry_connects()

    def delay(self) -> float:
        """How long the next piece is on its way, in seconds."""
        lowest, highest = self.faults.delay_seconds
        return self._dice.uniform(lowest, highest) if highest else 0.0

    def arrival(self) -> float:
        """When what is sent now is there."""
        return trio.current_time() + self.delay()

    def short(self, count: int) -> int:
        """How many bytes of so many a read or write takes."""
        share = self.faults.short_share
        if share and count > 1 and self._dice.random() < share:
            return self._dice.randint(1, count)
        return count

    def maybe_break(self, sock: MemorySocket) -> None:
        """After a write: break the connection off, if that is its fate."""
        share = self.faults.reset_share
        if share and self._dice.random() < share:
            self.break_off(sock)

    def note(self, what: str, sock: MemorySocket, data: bytes = b"") -> None:
        """Tell who watches."""
        if self._trace is not None:
            at = trio.current_time()
            self._trace(NetworkEvent(at, what, sock.name, sock.peer_name, data))

    def _new_socket(self, host: str, port: int | None) -> MemorySocket:
        if port is None:
            port = self._local_port
            self._local_port += 1
        self._number += 1
        sock = self._sockets[self._number] = MemorySocket(self, self._number, (host, port))
        return sock

    def _is_separated(self, one: str, other: str) -> bool:
        return any(
            (one in left and other in right) or (other in left and one in right)
            for left, right in self._separated
        )

    def __repr__(self) -> str:
        return f"<MemoryNetwork, {len(self._sockets)} sockets, listening on {self.listening}>"
