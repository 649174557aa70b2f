"""Requests to a server that answers each with what it was sent, one at a time per connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs
import trio

from trionet._util._counted import counted
from trionet._util._single_error import raise_single_error
from trionet.errors import DisconnectedError, TrionetError
from trionet.net._channel import Channel
from trionet.net._network import SYSTEM, Network
from trionet.net._selector import Selector
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._connecting import Address

from ._pace import Pace
from ._result import Result
from ._run import Run

SIZE_BYTES: Final = 4
#: How long a poll waits for answers before it looks whether the run is over.
LOOK_SECONDS: Final = 0.05
#: How long all connections may take together to be made, and the last answers to come.
CONNECT_SECONDS: Final = 10.0
LAST_ANSWER_SECONDS: Final = 5.0


@attrs.frozen(kw_only=True)
class Echo:
    """Who is asked, and what.

    Attributes:
        host: of the server.
        port: of the server.
        connections: how many there are.
        request_bytes: the size of a request, without the four bytes that tell it.
    """

    host: str
    port: int
    connections: int
    request_bytes: int

    @property
    def target(self) -> str:
        """The server, as it is named in results."""
        return f"{self.host}:{self.port}"


class Echoing:
    """Sends requests, and times each from when it is due until its answer is there.

    Args:
        echo: who is asked, and what.
        network: where connections come from.
    """

    def __init__(self, echo: Echo, network: Network = SYSTEM) -> None:
        self._echo = echo
        self._network = network
        self._payload = bytes(index % 251 for index in range(echo.request_bytes))
        self._frame = len(self._payload).to_bytes(SIZE_BYTES, "big") + self._payload
        self._asking: dict[Channel, float] = {}  # since when
        self._free: deque[Channel] = deque()
        self._taken = 0
        self._due_at: float | None = None
        self._due_count = 0
        self._refusal = ""

    async def run(self, run: Run) -> Result:
        """Ask as often as the plan says.

        Raises:
            DisconnectedError: the server cannot be reached, or has closed a connection.
            TrionetError: an answer is not what was sent.
        """
        with raise_single_error():
            async with (
                self._network.open_readiness(None) as readiness,
                trio.open_nursery() as nursery,
            ):
                selector = Selector(readiness, parks_at_once=True)
                nursery.start_soon(selector.alarm.keep_time)
                with _closing(selector):
                    await self._connect(selector)
                    run.begin()
                    await self._ask(selector, run)
                nursery.cancel_scope.cancel(reason="the run is over")
        return Result(
            command="echo",
            target=self._echo.target,
            things="requests",
            latency="from the moment a request is due until its answer is there",
            tally=run.tally,
        )

    async def _connect(self, selector: Selector) -> None:
        echo = self._echo
        try:
            with trio.fail_after(CONNECT_SECONDS):
                addresses = await self._network.resolve(echo.host, echo.port)
                while not await self._has_connected(selector, addresses.pop(0)):
                    if not addresses:
                        raise DisconnectedError(self._refusal)
        except OSError as error:
            raise DisconnectedError(f"{echo.target}: {error}") from error
        except trio.TooSlowError:
            raise DisconnectedError(
                f"{echo.target}: {len(self._free)} of {counted(echo.connections, 'connection')}"
                f" made within {CONNECT_SECONDS:g} s"
            ) from None

    async def _has_connected(self, selector: Selector, address: Address) -> bool:
        """Whether all connections could be made to one address of the server."""
        await trio.lowlevel.checkpoint()
        try:
            for number in range(self._echo.connections):
                sock = self._network.open_socket(address)
                transport = self._network.transport(sock)
                channel = Channel(str(number), transport, max(1, len(self._payload)), connects=True)
                selector.connect(channel, sock, address)
            while len(self._free) < self._echo.connections:
                result = await selector.poll()
                self._free.extend(result.connected)
                self._check(result.disconnected)
        except (OSError, DisconnectedError) as error:
            is_ours = isinstance(error, DisconnectedError)
            self._refusal = str(error) if is_ours else f"{self._echo.target}: {error}"
            selector.close_all(CloseReason.LOCAL_CLOSE)
            self._free.clear()
            return False
        return True

    async def _ask(self, selector: Selector, run: Run) -> None:
        pace = Pace(run.plan.rate, run.tally.began) if run.plan.rate else None
        await trio.lowlevel.checkpoint()
        while not run.is_over(self._taken):
            wait = self._ask_free(selector, run, pace)
            await self._poll(selector, run, wait)
        ends_at = run.now() + LAST_ANSWER_SECONDS
        while self._asking and run.now() < ends_at:
            await self._poll(selector, run, LOOK_SECONDS)
        if self._asking:
            run.tally.fail(len(self._asking), "there was no answer", run.now())

    def _ask_free(self, selector: Selector, run: Run, pace: Pace | None) -> float:
        """Send what is due on connections that are free; tells how long to wait at most."""
        selector.look_at_clock()
        now = run.now()
        while self._free and self._taken < run.plan.records_max:
            if pace is None:
                due_at = now
            else:
                while not self._due_count:
                    self._due_at = pace.due_at
                    self._due_count = pace.take()
                assert self._due_at is not None
                if self._due_at > now:
                    return min(self._due_at - now, LOOK_SECONDS)
                due_at = self._due_at
                self._due_count -= 1
            channel = self._free.popleft()
            self._taken += 1
            self._asking[channel] = due_at
            selector.send(channel, self._frame)
        return LOOK_SECONDS

    async def _poll(self, selector: Selector, run: Run, seconds_max: float) -> None:
        result = await selector.poll(seconds_max=seconds_max)
        self._check(result.disconnected)
        now = run.now()
        tally = run.tally
        for channel, answer in result.completed_receives:
            if answer != self._payload:
                raise TrionetError(f"{self._echo.target} answers something else than it was sent")
            tally.took(now - self._asking.pop(channel))
            self._free.append(channel)
        if result.completed_receives:
            answers = len(result.completed_receives)
            tally.count(answers, answers * len(self._payload), now)

    def _check(self, disconnected: list[Channel]) -> None:
        for channel in disconnected:
            raise DisconnectedError(f"{self._echo.target}: {_why(channel)}")


def _why(channel: Channel) -> str:
    assert channel.close_reason is not None
    return channel.close_detail or channel.close_reason.value


@contextmanager
def _closing(selector: Selector) -> Iterator[None]:
    try:
        yield
    finally:
        selector.close_all(CloseReason.LOCAL_CLOSE)
