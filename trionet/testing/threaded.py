"""A broker in a thread of its own, so that a blocking client beside it cannot deadlock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import trio

from ..broker import Broker, BrokerStatistics, open_broker

T = TypeVar("T")


class ThreadedBroker:
    """A running broker, to be used from any thread; made by :func:`broker`."""

    def __init__(self, broker: Broker, token: trio.lowlevel.TrioToken, ended: Future[None]) -> None:
        self._broker = broker
        self._token = token
        self._ended = ended
        self.bootstrap_servers = broker.bootstrap_servers
        self.cluster_id = broker.cluster_id

    def statistics(self) -> BrokerStatistics:
        """What the broker did and holds now."""
        return self._call(self._broker.statistics)

    def _call(self, function: Callable[[], T]) -> T:
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except Exception as error:  # boundary: the caller's question must not stop the broker
                future.set_exception(error)

        self._token.run_sync_soon(run)
        # A run that breaks down answers nobody.
        awaited: list[Future[Any]] = [future, self._ended]
        wait(awaited, return_when=FIRST_COMPLETED)
        if not future.done():
            raise trio.RunFinishedError("the broker has ended")
        return future.result()

    def __repr__(self) -> str:
        return f"<ThreadedBroker at {self.bootstrap_servers}>"


@contextmanager
def broker(
    settings: Mapping[str, object] | None = None, /, **keywords: object
) -> Iterator[ThreadedBroker]:
    """Run a broker in a thread for as long as the block lasts.

    In memory and on a free port of 127.0.0.1 by default. Usable in synchronous, asyncio and trio
    programs; nothing of it is left when the block has ended.

    Args:
        settings: Kafka's broker settings by their dotted keys.
        keywords: the same with underscores, as in ``num_partitions=3``; they win.

    Raises:
        ConfigError: a setting is unknown or its value is not allowed.
        OSError: a listener cannot be bound, or the data folder cannot be used.
    """
    started: Future[tuple[ThreadedBroker, Callable[[], None]]] = Future()
    given_up: Future[None] = Future()  # done when nobody waits for the start any more
    ended: Future[None] = Future()

    async def serve() -> None:
        token = trio.lowlevel.current_trio_token()
        stop = trio.Event()
        with trio.CancelScope() as scope:

            def cancel(_: object) -> None:
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(scope.cancel)

            given_up.add_done_callback(cancel)
            async with open_broker({**(settings or {}), **keywords}) as running:
                threaded = ThreadedBroker(running, token, ended)
                started.set_result((threaded, lambda: token.run_sync_soon(stop.set)))
                await stop.wait()

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as error:  # boundary: raised in the caller's thread  # noqa: ASYNC103
            if not started.done():
                started.set_exception(error)
                ended.set_result(None)
            else:
                ended.set_exception(error)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name="trionet-broker", daemon=True)
    try:
        thread.start()
        threaded, stop = started.result()
    except BaseException:  # an error of the start, or Ctrl-C while it goes on
        given_up.set_result(None)
        with suppress(RuntimeError):  # the thread has not begun; it ends at once when it does
            thread.join()
        raise
    try:
        yield threaded
    finally:
        if not ended.done():
            try:
                stop()
            except trio.RunFinishedError:
                pass  # it ended by an error, which is raised below
        thread.join()
        ended.result()
