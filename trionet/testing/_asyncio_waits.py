"""The waits for tests that use asyncio, and the check that a wait blocks no event loop.

The problem: a test with an asyncio client that calls a blocking wait stops the loop on which the
client would do what the test waits for, so the wait can only time out. The same is true of trio.

The choice: a blocking wait refuses to run in a thread whose event loop is running, always, rather
than only when it would have to wait, since that would depend on timing. The waits to await call the
broker's loop as the blocking ones do, and are woken by the loop's own thread-safe call.

Nothing here imports asyncio, which takes long and which no other program needs: if its loop is
running, the program has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

import trio

from ..errors import LocalProtocolError
from . import _operations as operations
from ._broker_loop import BrokerLoop
from ._conditions import Conditions
from ._internals import BrokerInternals
from ._operations import GroupView, TransactionView
from ._records import Record, Seed
from ._seen_requests import SeenRequest
from .faults._faults import Apis

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

T = TypeVar("T")

# The default timeout of waits.
WAIT_SECONDS = 10.0


def running_loop() -> Any:
    """Return the asyncio loop that is running in this thread; None if there is none."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def check_blocks_no_loop() -> None:
    """Check that this thread may block.

    Raises:
        LocalProtocolError: an event loop is running in this thread.
    """
    if trio.lowlevel.in_trio_task():
        raise LocalProtocolError(
            "this call would block the trio loop of this thread, and every client on it; use a"
            " worker thread, as in await trio.to_thread.run_sync(broker.wait_for_records, 'orders')"
            ", or trionet.open_broker() with trionet.testing.control(broker), whose waits are async"
        )
    if running_loop() is not None:
        raise LocalProtocolError(
            "this call would block the asyncio loop of this thread, and every client on it; await"
            " the wait of the same name of broker.asyncio, as in"
            " await broker.asyncio.wait_for_records('orders')"
        )


class AsyncioWaits:
    """The waits of a :class:`.ThreadedBroker` and its ``seed``, to be awaited in a task of asyncio.

    They have the names, arguments and errors of the blocking ones. Cancelling the task, as
    ``asyncio.timeout`` does, ends a wait; waiting has no side effects.
    """

    def __init__(self, inside: BrokerInternals, conditions: Conditions, loop: BrokerLoop) -> None:
        self._internals = inside
        self._conditions = conditions
        self._loop = loop
        # One callback for all waits, since a future never forgets one. It runs in the broker's
        # thread.
        self._wakes: set[Callable[[object], None]] = set()
        loop.ended.add_done_callback(self._wake_all)

    def _wake_all(self, ended: object) -> None:
        for wake in list(self._wakes):
            wake(ended)

    async def seed(self, topic: str, records: Iterable[Seed]) -> list[Record]:
        """Append records to a topic, creating it if needed; see :meth:`.ThreadedBroker.seed`.

        Cancellation: some of the records may have been appended.
        """
        return await self._run(operations.seed, self._internals, topic, list(records))

    async def wait_for_records(
        self,
        topic: str,
        count: int = 1,
        *,
        partition: int | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> list[Record]:
        """Wait for records; see :meth:`.ThreadedBroker.wait_for_records`."""
        return await self._wait(self._conditions.enough_records(topic, count, partition), seconds)

    async def wait_for_requests(
        self,
        apis: Apis = None,
        count: int = 1,
        *,
        topic: str | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> list[SeenRequest]:
        """Wait for requests; see :meth:`.ThreadedBroker.wait_for_requests`."""
        return await self._wait(self._conditions.enough_requests(apis, count, topic), seconds)

    async def wait_for_group(
        self,
        id: str,
        state: str = "Stable",
        *,
        members: int | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> GroupView:
        """Wait for a state of a group; see :meth:`.ThreadedBroker.wait_for_group`."""
        return await self._wait(self._conditions.group_in_state(id, state, members), seconds)

    async def wait_for_offset(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        seconds: float = WAIT_SECONDS,
    ) -> GroupView:
        """Wait for a committed offset; see :meth:`.ThreadedBroker.wait_for_offset`."""
        condition = self._conditions.committed(group, topic, partition, offset)
        return await self._wait(condition, seconds)

    async def wait_for_transaction(
        self, id: str, state: str, *, seconds: float = WAIT_SECONDS
    ) -> TransactionView:
        """Wait for a state of a transaction; see :meth:`.ThreadedBroker.wait_for_transaction`."""
        return await self._wait(self._conditions.transaction_in_state(id, state), seconds)

    async def _wait(self, condition: operations.Condition[T], seconds: float) -> T:
        wait = operations.wait_with_timeout
        return await self._run(wait, self._internals, condition, seconds)

    async def _run(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        loop = running_loop()
        if loop is None:
            raise LocalProtocolError(
                "broker.asyncio is for tasks of asyncio, and none runs here; elsewhere, call the"
                " method of the same name of the broker itself"
            )
        found, cancel = self._loop.start(function, *arguments)
        woken = loop.create_future()

        def wake(_: object) -> None:
            with suppress(RuntimeError):  # the program has closed its loop
                loop.call_soon_threadsafe(_set, woken)

        found.add_done_callback(wake)
        self._wakes.add(wake)
        if self._loop.ended.done():  # perhaps before the line above
            wake(None)
        try:
            await woken
        finally:
            self._wakes.discard(wake)
            cancel()
        return self._loop.result(found)


def _set(woken: Any) -> None:
    if not woken.done():  # cancelled, or woken by the other of the two
        woken.set_result(None)
