"""An in-memory network and virtual time, in which every run is repeatable.

The problem: tests of timeouts, partitions and lost connections take seconds and are flaky on real
sockets, and a failure that depends on timing cannot be reproduced.

The choice: sockets are Python objects in one loop. They have the interface of the system's network
(:class:`.Network`), so brokers and clients run unchanged. The network needs no threads and no
system sockets, and runs under trio's ``MockClock``, where waits take no real time. One seed
determines all random numbers; ids, task order and faults have separate generators, so that a change
to one does not affect the others. Delays, short reads, resets and partitions are configurable.

Rejected: a proxy over loopback sockets (real time, and the kernel decides the order) and mocks of
streams (they would not exercise readiness and partial writes). Reconsider for TLS, which is not
supported: it would need a memory BIO here.
"""

from __future__ import annotations

import errno
import math
import random
import socket
import ssl
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self, TypeVar

import trio
import trio.testing

from ...errors import LocalProtocolError
from ...net.wire._connecting import IPV6_PARTS, Address
from ...net.wire._endpoint import Endpoint, plain_address
from ...net.wire._readiness import WRITE, ReadinessKind
from ._medium import Medium, NetworkEvent, NetworkFaults
from ._readiness import MemoryReadiness
from ._socket import MemorySocket, os_error
from ._stream import MemoryStream, MemoryTransport, wait_ready

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True


class ListeningMemorySocket:
    """A listening socket; created by :meth:`~trionet.testing.MemoryNetwork.listen`.

    Attributes:
        changed: an event that is set, and replaced, when a connection is queued or the socket is
            closed.
    """

    def __init__(
        self,
        on_change: Callable[[ListeningMemorySocket], None],
        address: Address,
        backlog: int,
    ) -> None:
        self.changed: trio.Event = trio.Event()
        self._on_change = on_change
        self._address = address
        self._backlog = backlog
        self._pending: deque[tuple[float, MemorySocket]] = deque()  # by time of arrival
        self.is_open: bool = True

    def getsockname(self) -> Address:
        return self._address

    @property
    def has_room(self) -> bool:
        """Whether the backlog has room for another connection."""
        return len(self._pending) < self._backlog

    @property
    def next_arrival(self) -> float:
        """The time at which the next connection can be accepted; infinity if none is queued."""
        return self._pending[0][0] if self._pending else math.inf

    def add(self, sock: MemorySocket, at: float) -> None:
        """Queue a connection to be accepted at time ``at``, but not before any queued earlier."""
        if self._pending:
            at = max(at, self._pending[-1][0])
        self._pending.append((at, sock))
        self.wake()

    def wake(self) -> None:
        changed, self.changed = self.changed, trio.Event()
        changed.set()

    def accept(self) -> tuple[MemorySocket, Address]:
        if not self.is_open:
            raise os_error(errno.EBADF)
        if self.next_arrival > trio.current_time():
            raise os_error(errno.EAGAIN)
        sock = self._pending.popleft()[1]
        sock.note("accept")
        self._on_change(self)
        return sock, sock.remote

    def close(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._on_change(self)
        for _, sock in self._pending:
            sock.reset()
        self._pending.clear()
        self.wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


EPOCH_MS = 1_704_067_200_000
"""The wall-clock time when the loop's clock is at 0: the start of 2024 (UTC)."""

# The first ephemeral ports: of listeners, and of clients.
_FIRST_LISTENING_PORT = 20_000
_FIRST_LOCAL_PORT = 32_768

_LOOPBACK = {False: "127.0.0.1", True: "::1"}
_LOOPBACK_NAMES = {"localhost": _LOOPBACK[False]}


class MemoryNetwork:
    """An in-memory network of hosts and connections, used in place of the system's network.

    Pass the network to :func:`trionet.open_broker` or :func:`trionet.serve`, and connect to their
    listeners with :meth:`open_stream`. Every IP address is a host of the network.

    Args:
        seed: the seed for ids, faults and the order of tasks.
        faults: random faults; none by default.
        epoch_ms: the wall-clock time when the loop's clock is at 0, in ms since the epoch.
        trace: called with every event; None to report no events.

    Attributes:
        rng: the random number generator for ids.
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
        self._medium = Medium(seed, faults or NetworkFaults(), trace)
        self.rng: random.Random = random.Random(f"ids {seed}")  # noqa: S311 - repeatable
        order = random.Random(f"order {seed}")  # noqa: S311
        self.shuffle: Callable[[list[Any]], None] = order.shuffle
        self._epoch_ms = epoch_ms
        self._sockets: dict[int, MemorySocket] = {}
        self._listening: dict[tuple[str, int], ListeningMemorySocket] = {}
        self._separated: list[tuple[frozenset[str], frozenset[str]]] = []
        self._connecting: list[tuple[MemorySocket, Address]] = []  # connects without a response
        self._number = 0
        self._listening_port = _FIRST_LISTENING_PORT
        self._local_port = _FIRST_LOCAL_PORT

    # For tests.

    @property
    def faults(self) -> NetworkFaults:
        """The random faults; may be replaced."""
        return self._medium.faults

    @faults.setter
    def faults(self, faults: NetworkFaults) -> None:
        self._medium.faults = faults

    async def open_stream(self, address: str, *, local_host: str | None = None) -> MemoryStream:
        """Connect to a listening socket; the counterpart of :func:`trio.open_tcp_stream`.

        Args:
            address: ``host:port``, as in a broker's ``bootstrap_servers``.
            local_host: the host address to connect from; loopback by default.

        Raises:
            OSError: the address is invalid, or the connection was refused.

        Cancellation: no connection is left open.
        """
        host, _, port = address.rpartition(":")
        [target, *_] = await self.resolve(host.strip("[]"), int(port))
        local_host = plain_address(local_host or _LOOPBACK[len(target) == IPV6_PARTS])
        sock = self._new_socket(local_host, None)
        try:
            sock.connect_ex(target)
            await wait_ready(sock, WRITE)
            failure = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failure:
                raise OSError(
                    failure, f"could not connect to {address}: {os_error(failure).strerror}"
                )
        except BaseException:
            sock.close()
            raise
        return MemoryStream(sock)

    @property
    def open_sockets(self) -> list[MemorySocket]:
        """The open sockets, excluding listening sockets."""
        return list(self._sockets.values())

    @property
    def listening(self) -> list[str]:
        """The addresses of all listening sockets, as ``host:port``."""
        return [f"{host}:{port}" for host, port in self._listening]

    def separate(self, hosts: Iterable[str], others: Iterable[str]) -> None:
        """Partition the network between two sets of hosts, until :meth:`heal`.

        Data in transit, data sent meanwhile and connection attempts are held up until then.
        """
        sides = frozenset(map(plain_address, hosts)), frozenset(map(plain_address, others))
        self._separated.append(sides)
        for sock in self._sockets.values():
            if sock.peer is not None and self._is_separated(sock.host, sock.peer.host):
                sock.incoming.hold()

    def heal(self) -> None:
        """End all partitions."""
        self._separated.clear()
        for sock in list(self._sockets.values()):
            if sock.incoming.is_held:
                sock.incoming.release(self._medium.arrival())
                sock.notify()
        self._retry_connects()

    def break_off(self, sock: MemorySocket) -> None:
        """Reset a connection from within the network, so that both ends receive a reset."""
        sock.break_connection()

    def kill_host(self, host: str, *, is_silent: bool = False) -> None:
        """Close all sockets of a host, as the kernel does when a process is killed.

        Args:
            host: the address of the host.
            is_silent: whether peers notice only when they send, as after a power failure.
        """
        host = plain_address(host)
        for listening in [each for at, each in self._listening.items() if at[0] == host]:
            listening.close()
        for sock in [each for each in self._sockets.values() if each.host == host]:
            if is_silent:
                sock.vanish()
            else:
                sock.close()

    # What trionet does: see trionet.net._network.Network.

    def now_ms(self) -> int:
        """Return the wall-clock time in ms since the epoch, derived from trio's clock."""
        return self._epoch_ms + int(trio.current_time() * 1000)

    def listen(
        self,
        endpoint: Endpoint,
        *,
        backlog: int,
        receive_buffer_bytes: int,  # noqa: ARG002 - set per socket
    ) -> ListeningMemorySocket:
        """Open a listening socket in this network; port 0 picks a free port.

        Raises:
            OSError: the address is in use.
        """
        host = "" if endpoint.is_wildcard else plain_address(endpoint.host)
        host = _LOOPBACK_NAMES.get(host, host)
        port = endpoint.port
        while not port or (not endpoint.port and (host, port) in self._listening):
            port = self._listening_port
            self._listening_port += 1
        if (host, port) in self._listening:
            raise OSError(errno.EADDRINUSE, f"cannot listen on {endpoint}: address already in use")
        address = (host or _LOOPBACK[False], port)
        listening = self._listening[host, port] = ListeningMemorySocket(
            self._listening_changed, address, backlog
        )
        return listening

    async def wait_acceptable(self, listening: ListeningMemorySocket) -> None:
        """Wait until a listening socket may have a connection to accept."""
        await trio.lowlevel.checkpoint()
        while listening.is_open and listening.next_arrival > trio.current_time():
            with trio.CancelScope(deadline=listening.next_arrival):
                await listening.changed.wait()

    @asynccontextmanager
    async def open_readiness(self, kind: ReadinessKind | None) -> AsyncIterator[MemoryReadiness]:
        """Open a readiness backend for the sockets of this network.

        Raises:
            ValueError: ``kind`` is not None; this network has only one readiness backend.
        """
        if kind is not None:
            raise ValueError(f"an in-memory network has no readiness backend {kind!r}; use None")
        await trio.lowlevel.checkpoint()
        yield MemoryReadiness(self._sockets)

    def transport(
        self,
        sock: MemorySocket,
        tls_context: ssl.SSLContext | None = None,
        server_name: str | None = None,  # noqa: ARG002 - for TLS only
    ) -> MemoryTransport:
        """Return a channel's transport over an in-memory socket.

        Raises:
            ValueError: a TLS context was given; this network does not support TLS.
        """
        if tls_context is not None:
            raise ValueError("an in-memory network does not support TLS")
        return MemoryTransport(sock)

    async def resolve(self, host: str, port: int) -> list[Address]:
        """Resolve localhost or an IP address.

        Raises:
            OSError: the host is any other name.
        """
        await trio.lowlevel.checkpoint()
        host = _LOOPBACK_NAMES.get(host, host)
        try:
            found = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except (OSError, UnicodeError) as error:
            raise OSError(
                f"cannot resolve {host!r}: an in-memory network resolves only localhost and"
                " IP addresses"
            ) from error
        return [(plain_address(str(address[0])), port) for *_, address in found]

    def open_socket(
        self, address: Address, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1
    ) -> MemorySocket:
        """Create an unconnected socket."""
        sock = self._new_socket(_LOOPBACK[":" in address[0]], None)
        if send_buffer_bytes != -1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        if receive_buffer_bytes != -1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        return sock

    # Called by its sockets.

    def _connect(self, sock: MemorySocket, address: Address) -> None:
        if not sock.is_open:
            return
        host, port = address[0], address[1]
        if self._is_separated(sock.host, host):
            self._connecting.append((sock, address))
            return
        listening = self._listening.get((host, port)) or self._listening.get(("", port))
        at = self._medium.arrival()
        if listening is None:
            sock.note("refuse")
            sock.refuse(at + self._medium.delay())
        elif not listening.has_room:
            self._connecting.append((sock, address))
        else:
            accepted = self._new_socket(host, port)
            accepted.pair_with(sock)
            sock.pair_with(accepted)
            listening.add(accepted, at)
            sock.accepted(at + self._medium.delay())

    def _retry_connects(self) -> None:
        connecting, self._connecting = self._connecting, []
        for sock, address in connecting:
            self._connect(sock, address)

    def _forget(self, sock: MemorySocket) -> None:
        self._sockets.pop(sock.number, None)

    def _listening_changed(self, listening: ListeningMemorySocket) -> None:
        """Forget a listening socket that is closed, and retry pending connection attempts."""
        if not listening.is_open:
            for at, each in list(self._listening.items()):
                if each is listening:
                    del self._listening[at]
        self._retry_connects()

    def _new_socket(self, host: str, port: int | None) -> MemorySocket:
        if port is None:
            port = self._local_port
            self._local_port += 1
        self._number += 1
        sock = self._sockets[self._number] = MemorySocket(
            self._medium, self._number, (host, port), self._connect, self._forget
        )
        return sock

    def _is_separated(self, one: str, other: str) -> bool:
        return any(
            (one in left and other in right) or (other in left and one in right)
            for left, right in self._separated
        )

    def __repr__(self) -> str:
        return f"<MemoryNetwork, {len(self._sockets)} sockets, listening on {self.listening}>"


T = TypeVar("T")


def run_virtual(
    async_fn: Callable[..., Awaitable[T]],
    /,
    *args: Any,
    seed: int = 0,
    faults: NetworkFaults | None = None,
    epoch_ms: int = EPOCH_MS,
    trace: Callable[[NetworkEvent], None] | None = None,
) -> T:
    """Run an async function as :func:`trio.run` does, in virtual time, on an in-memory network.

    When all tasks are waiting, the clock jumps to the next deadline. Ids, faults and the order of
    tasks depend only on the seed, so runs are repeatable.

    Args:
        async_fn: the async function to call, with the network and ``args``.
        args: further arguments for ``async_fn``.
        seed: the seed for everything that would otherwise be random.
        faults: random faults of the network.
        epoch_ms: the wall-clock time at the start, in ms since the epoch.
        trace: called with every event on the network.

    Returns:
        The result of ``async_fn``.
    """

    async def main() -> T:
        with virtual(seed, faults=faults, epoch_ms=epoch_ms, trace=trace) as network:
            return await async_fn(network, *args)

    with _seeded_schedule(seed):
        return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@contextmanager
def virtual(
    seed: int = 0,
    *,
    faults: NetworkFaults | None = None,
    epoch_ms: int = EPOCH_MS,
    trace: Callable[[NetworkEvent], None] | None = None,
) -> Iterator[MemoryNetwork]:
    """Provide an in-memory network and a deterministic order of tasks, for a run in virtual time.

    The run must use trio's ``MockClock``, for example through pytest-trio's ``autojump_clock``. The
    order of tasks is global to the process, so concurrent runs in several threads are not
    repeatable.

    Args:
        seed: see :func:`run_virtual`.
        faults: random faults of the network.
        epoch_ms: the wall-clock time when the loop's clock is at 0, in ms since the epoch.
        trace: called with every event on the network.

    Raises:
        LocalProtocolError: the run uses another clock, so waits would take real time.
    """
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, trio.testing.MockClock):
        raise LocalProtocolError(
            f"virtual time requires trio.testing.MockClock, but this run uses {clock!r}; use"
            " run_virtual(), or pytest-trio's autojump_clock fixture"
        )
    with _seeded_schedule(seed):
        yield MemoryNetwork(seed, faults=faults, epoch_ms=epoch_ms, trace=trace)


@contextmanager
def _seeded_schedule(seed: int) -> Iterator[None]:
    """Make a seed determine the order of tasks in each pass of trio's scheduler.

    Trio shuffles the tasks, and has a testing switch that makes the shuffle repeatable.
    pytest-trio and hypothesis also set this switch.
    """
    scheduler: Any = sys.modules["trio._core._run"]
    dice: random.Random = scheduler._r  # noqa: SLF001
    was_repeatable = scheduler._ALLOW_DETERMINISTIC_SCHEDULING  # noqa: SLF001
    state = dice.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True  # noqa: SLF001
    dice.seed(seed)
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = was_repeatable  # noqa: SLF001
        dice.setstate(state)
