"""The load and the server of ``trionet bench echo``."""

from __future__ import annotations

import signal
from collections import deque
from typing import Final

import trio

from trionet._util._raising import raise_single_error
from trionet._util._text import counted
from trionet.errors import ConfigError, DisconnectedError, TrionetError
from trionet.net._channel import Channel
from trionet.net._network import SYSTEM, Network
from trionet.net._selector import Selector
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._connecting import Address
from trionet.net.wire._endpoint import Endpoint
from trionet.server import Request, ServerConfig, SocketServer

from ._results import Result
from ._runs import Run

SIZE_BYTES: Final = 4
#: How long a poll waits for responses before the load checks whether the run is over.
CHECK_SECONDS: Final = 0.05
#: The time limits for opening all connections and for receiving the last responses.
CONNECT_SECONDS: Final = 10.0
LAST_RESPONSE_SECONDS: Final = 5.0


class EchoLoad:
    """A load that measures each request from its due time until the response arrives.

    One request is in flight per connection.

    Args:
        host: the host of the server.
        port: the port of the server.
        connections: the number of connections.
        request_bytes: the size of a request, without the four-byte prefix.
        network: opens the connections.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        connections: int,
        request_bytes: int,
        network: Network = SYSTEM,
    ) -> None:
        self._host = host
        self._port = port
        self._target = f"{host}:{port}"
        self._connections = connections
        self._network = network
        self._payload = bytes(index % 251 for index in range(request_bytes))
        self._frame = len(self._payload).to_bytes(SIZE_BYTES, "big") + self._payload
        self._pending: dict[Channel, float] = {}  # the time each request was due
        self._free: deque[Channel] = deque()
        self._sent = 0
        self._due_at: float | None = None
        self._due_count = 0
        self._failure = ""

    async def run(self, run: Run) -> Result:
        """Send as many requests as the plan requires.

        Raises:
            DisconnectedError: the server cannot be reached, or has closed a connection.
            TrionetError: a response differs from the request.
        """
        with raise_single_error():
            async with (
                self._network.open_readiness(None) as readiness,
                trio.open_nursery() as nursery,
            ):
                selector = Selector(readiness, parks_at_once=True)
                nursery.start_soon(selector.alarm.keep_time)
                try:
                    await self._connect(selector)
                    run.begin()
                    await self._run_load(selector, run)
                finally:
                    selector.close_all(CloseReason.LOCAL_CLOSE)
                nursery.cancel_scope.cancel(reason="the run is over")
        return Result(
            command="echo",
            target=self._target,
            things="requests",
            latency="from when a request is due until its response arrives",
            tally=run.tally,
        )

    async def _connect(self, selector: Selector) -> None:
        try:
            with trio.fail_after(CONNECT_SECONDS):
                addresses = await self._network.resolve(self._host, self._port)
                while not await self._has_connected(selector, addresses.pop(0)):
                    if not addresses:
                        raise DisconnectedError(self._failure)
        except OSError as error:
            raise DisconnectedError(f"{self._target}: {error}") from error
        except trio.TooSlowError:
            raise DisconnectedError(
                f"{self._target}: {len(self._free)} of {counted(self._connections, 'connection')}"
                f" established within {CONNECT_SECONDS:g} s"
            ) from None

    async def _has_connected(self, selector: Selector, address: Address) -> bool:
        """Open all connections to one address of the server, and return whether this succeeded."""
        await trio.lowlevel.checkpoint()
        try:
            for number in range(self._connections):
                sock = self._network.open_socket(address)
                transport = self._network.transport(sock)
                channel = Channel(str(number), transport, max(1, len(self._payload)), connects=True)
                selector.connect(channel, sock, address)
            while len(self._free) < self._connections:
                result = await selector.poll()
                self._free.extend(result.connected)
                self._check(result.disconnected)
        except (OSError, DisconnectedError) as error:
            is_ours = isinstance(error, DisconnectedError)
            self._failure = str(error) if is_ours else f"{self._target}: {error}"
            selector.close_all(CloseReason.LOCAL_CLOSE)
            self._free.clear()
            return False
        return True

    async def _run_load(self, selector: Selector, run: Run) -> None:
        await trio.lowlevel.checkpoint()
        while not run.is_over(self._sent):
            wait = self._send_due(selector, run)
            await self._poll(selector, run, wait)
        ends_at = run.now() + LAST_RESPONSE_SECONDS
        while self._pending and run.now() < ends_at:
            await self._poll(selector, run, CHECK_SECONDS)
        if self._pending:
            run.tally.fail(len(self._pending), "no response", run.now())
        await run.wait_for_last_interval()

    def _send_due(self, selector: Selector, run: Run) -> float:
        """Send the due requests on idle connections, and return the timeout for the next poll."""
        selector.look_at_clock()
        now = run.now()
        while self._free and self._sent < run.plan.records_max:
            if (pace := run.pace) is None:
                due_at = now
            else:
                while not self._due_count:
                    self._due_at = pace.due_at
                    self._due_count = pace.take()
                assert self._due_at is not None
                if self._due_at > now:
                    return min(self._due_at - now, CHECK_SECONDS)
                due_at = self._due_at
                self._due_count -= 1
            channel = self._free.popleft()
            self._sent += 1
            self._pending[channel] = due_at
            selector.send(channel, self._frame)
        return CHECK_SECONDS

    async def _poll(self, selector: Selector, run: Run, seconds_max: float) -> None:
        result = await selector.poll(seconds_max=seconds_max)
        self._check(result.disconnected)
        now = run.now()
        tally = run.tally
        for channel, response in result.completed_receives:
            if response != self._payload:
                raise TrionetError(f"{self._target}: a response differs from its request")
            tally.took(now - self._pending.pop(channel))
            self._free.append(channel)
        if result.completed_receives:
            responses = len(result.completed_receives)
            tally.count(responses, responses * len(self._payload), now)

    def _check(self, disconnected: list[Channel]) -> None:
        for channel in disconnected:
            if isinstance(channel.connect_error, ConnectionRefusedError):
                raise DisconnectedError(f"nothing listens at {self._target} (connection refused)")
            raise DisconnectedError(f"{self._target}: {_why(channel)}")


def _why(channel: Channel) -> str:
    assert channel.close_reason is not None
    return channel.close_detail or channel.close_reason.value


#: The listen backlog, large because a benchmark opens all its connections simultaneously.
BACKLOG = 8192


def run_server(address: str, ready: str) -> int:
    """Run the echo server until a signal arrives.

    Args:
        address: the address to listen on, ``HOST:PORT``.
        ready: the prefix of the line that reports the listening address.

    Returns:
        The exit status.
    """
    try:
        trio.run(_serve, f"PLAINTEXT://{address}", ready)
    except OSError as error:
        raise ConfigError(f"--serve {address}: {error}") from error
    return 0


async def _serve(endpoint: str, ready: str) -> None:
    config = ServerConfig(socket_listen_backlog_size=BACKLOG)
    server = SocketServer(_echo, [Endpoint.parse(endpoint)], config)
    with (
        raise_single_error(),
        trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals,
    ):
        async with trio.open_nursery() as nursery:
            [bound] = await nursery.start(server.run)
            print(f"{ready}{bound.host}:{bound.port}", flush=True)
            async for _ in signals:
                break
            await server.stop()


async def _echo(request: Request) -> bytes:  # noqa: ASYNC910 -- its task waits for requests
    payload = request.payload
    return len(payload).to_bytes(4, "big") + payload  # noqa: ASYNC910
