"""A broker in a thread of its own, so that a blocking client beside it cannot deadlock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

import trio

from ..broker import Broker, BrokerStatistics, open_broker

T = TypeVar("T")


class ThreadedBroker:
    """A running broker, to be used from any thread; made by :func:`broker`."""

    def __init__(self, broker: Broker, token: trio.lowlevel.TrioToken) -> None:
        self._broker = broker
        self._token = token
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

    async def serve() -> None:
        async with open_broker(settings, **keywords) as running:
            token = trio.lowlevel.current_trio_token()
            stop = trio.Event()
            threaded = ThreadedBroker(running, token)
            started.set_result((threaded, lambda: token.run_sync_soon(stop.set)))
            await stop.wait()

    ended: Future[None] = Future()

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
    thread.start()
    try:
        threaded, stop = started.result()
    except BaseException:
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
