"""One trio loop in a thread of each Python process of Spark, and what is kept open in it.

Spark calls plain functions, and a generator cannot be suspended inside of ``trio.run``: so the loop
has a thread of its own, which lives as long as the process, as do the connections of its clients
from one task of Spark to the next (the connector: InternalKafkaConsumerPool).

Nothing here happens when it is imported: Spark forks its workers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Generic, TypeVar, TypeVarTuple, cast

import trio

from ..._util._single_error import raise_single_error

logger = logging.getLogger("trionet.spark")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: What nobody has used for so long is closed (the connector: spark.kafka.consumer.cache.timeout).
IDLE_SECONDS: Final = 300.0

_host: LoopHost | None = None
_making: Final = threading.Lock()


def host() -> LoopHost:
    """The loop of this process; the first call starts it, also after a fork."""
    global _host  # noqa: PLW0603 -- one for each process
    with _making:
        if _host is None or not _host.is_alive:
            _host = LoopHost()
        return _host


class LoopHost:
    """See the module; :func:`host` gives the one of this process."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._kept: dict[Hashable, _Kept[Any]] = {}
        self._thread = threading.Thread(target=self._run, name="trionet", daemon=True)
        self._thread.start()
        self._started.wait()

    @property
    def is_alive(self) -> bool:
        """Whether there still is a loop; not in a process that was forked from this one."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            trio.run(self._main)
        finally:
            self._started.set()

    async def _main(self) -> None:
        with raise_single_error():
            async with trio.open_nursery() as self._nursery:
                self._opening = trio.Lock()
                self._token = trio.lowlevel.current_trio_token()
                self._started.set()
                await trio.sleep_forever()

    def call(self, afn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run an async function in the loop, and wait for what it returns or raises.

        Args:
            afn: the function; calls from several threads run at the same time.
            args: its arguments.

        Raises:
            trio.RunFinishedError: the loop was closed.
        """
        return trio.from_thread.run(afn, *args, trio_token=self._token)

    def close(self) -> None:
        """Close all that is kept, and end the loop; :func:`host` makes another one."""
        if self.is_alive:
            self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
        self._thread.join()

    # In the loop.

    def start_soon(self, afn: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
        """Run an async function beside the calls; for the loop's thread.

        Args:
            afn: raises nothing, or the loop would end with it.
            args: its arguments.
        """
        self._nursery.start_soon(afn, *args)

    @asynccontextmanager
    async def lease(
        self, key: Hashable, opens: Callable[[], AbstractAsyncContextManager[T]]
    ) -> AsyncIterator[T]:
        """What is kept open under a key, such as a client; for tasks of the loop.

        Args:
            key: of everything that makes it what it is.
            opens: opens it where nothing is kept. It is closed when nobody has used it for
                ``IDLE_SECONDS``.

        Raises:
            Exception: what opening raises.

        Cancellation: what was opened meanwhile is kept.
        """
        kept: _Kept[T]
        async with self._opening:
            if key not in self._kept:
                kept = _Kept()
                await self._nursery.start(self._keep, key, kept, opens)
            kept = self._kept[key]
            kept.users += 1
        try:
            yield cast(T, kept.value)
        finally:
            kept.users -= 1
            kept.changed.unpark_all()

    def drop(self, key: Hashable) -> None:
        """Close what is kept under a key when its users are done; who comes next opens another."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            kept.is_dropped = True
            kept.changed.unpark_all()

    async def _keep(  # noqa: ASYNC910 -- a task, whose error is told in the log
        self,
        key: Hashable,
        kept: _Kept[T],
        opens: Callable[[], AbstractAsyncContextManager[T]],
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        is_open = False
        try:
            async with opens() as kept.value:
                self._kept[key] = kept
                is_open = True
                task_status.started()
                await kept.until_unused()
                self._forget(key, kept)
        except Exception:  # boundary: one of the things that are kept
            self._forget(key, kept)
            if not is_open:
                raise
            logger.exception("what was kept open has failed, and is opened again when it is used")

    def _forget(self, key: Hashable, kept: _Kept[Any]) -> None:
        if self._kept.get(key) is kept:
            del self._kept[key]


class _Kept(Generic[T]):
    """Something that is kept open."""

    def __init__(self) -> None:
        self.value: T | None = None
        self.users = 0
        self.is_dropped = False
        self.changed = trio.lowlevel.ParkingLot()

    async def until_unused(self) -> None:
        """Wait until it was dropped, or nobody has used it for long."""
        await trio.lowlevel.checkpoint()
        while self.users or not self.is_dropped:
            seconds = float("inf") if self.users else IDLE_SECONDS
            with trio.move_on_after(seconds) as scope:
                await self.changed.park()
            if scope.cancelled_caught and not self.users:
                return
