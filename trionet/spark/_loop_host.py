"""The trio loop of a Spark Python process, in its own thread, and the clients it keeps open.

Spark calls plain functions, and a generator cannot be suspended inside ``trio.run``. The loop
therefore has its own thread, which runs until the process exits. Successive Spark tasks share the
clients and their connections (the connector: InternalKafkaConsumerPool).

Importing this module starts no thread: Spark forks its workers, and threads do not survive a fork.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Generic, TypeVar, TypeVarTuple, cast

import trio

from .._util._logging import get_logger
from .._util._raising import raise_single_error
from ..errors import TrionetError

logger = get_logger("trionet.spark")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: A resource idle for this long is closed (the connector: spark.kafka.consumer.cache.timeout).
IDLE_SECONDS: Final = 300.0

_host: LoopHost | None = None
_host_lock: Final = threading.Lock()


def host() -> LoopHost:
    """Return the loop of this process, starting it if needed, including after a fork."""
    global _host  # noqa: PLW0603 -- one per process
    with _host_lock:
        if _host is None:
            # Spark collects garbage after each task. Without this, that takes 20 ms, nearly all to
            # look through the modules, of which everything that a task needs is imported by now.
            gc.collect()  # or garbage of earlier tasks would stay
            gc.freeze()
        if _host is None or not _host.is_alive:
            _host = LoopHost()
        return _host


class LoopHost:
    """A trio loop in a daemon thread; :func:`host` returns the loop of this process."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._resources: dict[Hashable, _Resource[Any]] = {}
        self._thread = threading.Thread(target=self._run, name="trionet", daemon=True)
        self._thread.start()
        self._started.wait()

    @property
    def is_alive(self) -> bool:
        """Whether the loop is running; False in a fork of the process that started the loop."""
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
        """Run an async function in the loop and return its result; blocks the calling thread.

        Args:
            afn: the function; calls from several threads run concurrently.
            args: the arguments of the function.

        Raises:
            trio.RunFinishedError: the loop has been closed.
            TrionetError: raised by the function; without its cause and its frames, which are in the
                log at level DEBUG. Spark shows both to users before what the error says.
            Exception: any other error raised by the function.
        """
        try:
            return trio.from_thread.run(afn, *args, trio_token=self._token)
        except TrionetError as error:
            logger.debug("%s", error, exc_info=error)
            raise error.with_traceback(None) from None

    def close(self) -> None:
        """Close all resources and end the loop; :func:`host` then starts a new loop."""
        if self.is_alive:
            self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
        self._thread.join()

    # Called in the loop's thread.

    def start_soon(self, afn: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
        """Start a background task in the loop.

        Args:
            afn: the function; it must not raise, because an error ends the loop.
            args: the arguments of the function.
        """
        self._nursery.start_soon(afn, *args)

    @asynccontextmanager
    async def lease(
        self, key: Hashable, opens: Callable[[], AbstractAsyncContextManager[T]]
    ) -> AsyncIterator[T]:
        """Lease the shared resource with this key, such as a client, opening it if needed.

        Args:
            key: identifies the resource; must include everything that affects how it is opened.
            opens: opens the resource, which is closed after ``IDLE_SECONDS`` without a lease.

        Raises:
            Exception: any error raised by ``opens``.

        Cancellation: a resource that has already been opened stays open for the next lease.
        """
        resource: _Resource[T]
        async with self._opening:
            if key not in self._resources:
                resource = _Resource()
                await self._nursery.start(self._keep, key, resource, opens)
            resource = self._resources[key]
            resource.users += 1
        try:
            yield cast(T, resource.value)
        finally:
            resource.users -= 1
            resource.changed.unpark_all()

    def drop(self, key: Hashable) -> None:
        """Close a resource once its current leases end; the next lease opens a new one."""
        resource = self._resources.pop(key, None)
        if resource is not None:
            resource.is_dropped = True
            resource.changed.unpark_all()

    async def _keep(  # noqa: ASYNC910 -- a task; its error is logged
        self,
        key: Hashable,
        resource: _Resource[T],
        opens: Callable[[], AbstractAsyncContextManager[T]],
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        is_open = False
        try:
            async with opens() as resource.value:
                self._resources[key] = resource
                is_open = True
                task_status.started()
                await resource.until_unused()
                self._forget(key, resource)
        except Exception:  # boundary: one resource fails, not the loop
            self._forget(key, resource)
            if not is_open:
                raise
            logger.exception("a shared client failed; the next task opens a new one")

    def _forget(self, key: Hashable, resource: _Resource[Any]) -> None:
        if self._resources.get(key) is resource:
            del self._resources[key]


class _Resource(Generic[T]):
    """An open shared resource, with the number of its leases."""

    def __init__(self) -> None:
        self.value: T | None = None
        self.users = 0
        self.is_dropped = False
        self.changed = trio.lowlevel.ParkingLot()

    async def until_unused(self) -> None:
        """Wait until the resource has no leases, and has been dropped or idle for too long."""
        await trio.lowlevel.checkpoint()
        while self.users or not self.is_dropped:
            seconds = float("inf") if self.users else IDLE_SECONDS
            with trio.move_on_after(seconds) as scope:
                await self.changed.park()
            if scope.cancelled_caught and not self.users:
                return
