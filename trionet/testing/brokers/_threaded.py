"""A broker in a thread of its own, so that a blocking client beside it cannot deadlock."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import attrs
import trio

from ...broker import Broker, BrokerStatistics, open_broker
from ...errors import LocalProtocolError
from ...metrics._log_ring import LogRing
from ..faults._faults import Apis
from ..internals import _broker_operations as chores
from ..internals._broker_internals import inside_of
from ..internals._groups import GroupView
from ..internals._records import Record, Seed
from ..requests._seen_requests import SeenRequest
from ._client_configs import ClientSecurity, client_config
from ._controls import Controls
from ._secured import Security, add_users, security_of
from ._topic_settings import Topics, Wanted, wanted_topics

T = TypeVar("T")

# How long a wait of a test takes at most, if it does not say.
WAIT_SECONDS = 10.0

ENDED = (
    "the broker has ended, as its with block or the test of its fixture has; what is to be known of"
    " it is to be asked before"
)


@attrs.frozen
class _Loop:
    """The broker's own loop, as seen from other threads."""

    token: trio.lowlevel.TrioToken
    nursery: trio.Nursery
    ended: Future[None]
    thread: int

    def call(self, function: Callable[[], T], /) -> T:
        if threading.get_ident() == self.thread:  # in ``when``, or a function of ``answer``
            return function()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except Exception as error:  # boundary: the caller's question must not stop the broker
                future.set_exception(error)

        self._soon(run)
        return self._result(future)

    def run(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        if threading.get_ident() == self.thread:
            raise LocalProtocolError(
                "this waits for the broker, so it cannot be called in the broker's own thread, by"
                " when= or by a function that makes an answer; what does not wait can be"
            )
        future: Future[T] = Future()

        async def run() -> None:
            await trio.lowlevel.checkpoint()
            try:
                future.set_result(await function(*arguments))
            except Exception as error:  # boundary: as in call
                future.set_exception(error)

        self._soon(partial(self.nursery.start_soon, run))
        return self._result(future)

    def _soon(self, function: Callable[[], object]) -> None:
        try:
            self.token.run_sync_soon(function)
        except trio.RunFinishedError:
            raise trio.RunFinishedError(ENDED) from None

    def _result(self, future: Future[T]) -> T:
        # A run that breaks down answers nobody.
        awaited: list[Future[Any]] = [future, self.ended]
        wait(awaited, return_when=FIRST_COMPLETED)
        if not future.done():
            raise trio.RunFinishedError(ENDED)
        return future.result()


class ThreadedBroker(Controls):
    """A running broker, to be used from any thread; made by :func:`broker`.

    As :class:`~trionet.testing.brokers._broker_control.BrokerControl`, but nothing is awaited.
    Waits have a deadline, and raise ``TimeoutError``.

    Attributes:
        bootstrap_servers: what a client is given, as in ``"127.0.0.1:50123"``.
        cluster_id: as clients see it.
        security: what a client needs besides, with TLS or SASL.
    """

    def __init__(
        self, broker: Broker, loop: _Loop, security: ClientSecurity, logged: LogRing
    ) -> None:
        super().__init__(broker, loop.call)
        self._broker = broker
        self._loop = loop
        self._logged = logged
        self.bootstrap_servers = broker.bootstrap_servers
        self.cluster_id = broker.cluster_id
        self.security = security

    def statistics(self) -> BrokerStatistics:
        """What the broker did and holds now."""
        return self._call(self._broker.statistics)

    # Nodes, of which there are several with ``brokers=``.

    @property
    def node_ids(self) -> list[int]:
        """The ids of all nodes."""
        return self._call(lambda: self._broker.node_ids)

    @property
    def running_nodes(self) -> list[int]:
        """The ids of those that are not stopped."""
        return self._call(lambda: self._broker.running_nodes)

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition; -1 while none does.

        Raises:
            ValueError: there is no such partition.
        """
        return self._call(lambda: self._broker.leader(topic, partition))

    def coordinator(self, group: str) -> int:
        """The node that coordinates a consumer group; -1 while none does."""
        return self._call(lambda: self._broker.coordinator(group))

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition; see :meth:`trionet.Broker.move_leader`.

        Raises:
            ValueError: there is no such partition, or the node cannot lead it.
        """
        self._loop.run(self._broker.move_leader, topic, partition, node)

    def move_coordinator(self, group: str, node: int) -> None:
        """Make a node the coordinator of a group, and of all in the same partition.

        Raises:
            ValueError: there is no such node, or it is stopped.
        """
        self._loop.run(self._broker.move_coordinator, group, node)

    def elect_preferred_leaders(self) -> None:
        """Give every partition to the first of its replicas, where that runs."""
        self._loop.run(self._broker.elect_preferred_leaders)

    def stop(self, node: int) -> None:
        """Stop a node; see :meth:`trionet.Broker.stop`.

        Raises:
            ValueError: there is no such node.
        """
        self._loop.run(self._broker.stop, node)

    def start(self, node: int) -> None:
        """Start a stopped node again, on the same ports; see :meth:`trionet.Broker.start`.

        Raises:
            ValueError: there is no such node.
            OSError: a port was taken by somebody else meanwhile.
        """
        self._loop.run(self._broker.start, node)

    def client_config(self, client: str) -> dict[str, Any]:
        """What a client needs to connect, as its own settings.

        Args:
            client: ``confluent-kafka``, ``kafka-python`` or ``aiokafka``.

        Raises:
            ValueError: it is none of these.
        """
        return client_config(client, self.bootstrap_servers, self.security)

    def create_topic(self, name: str, partitions: int | None = None, **configs: object) -> None:
        """Make a topic; ``configs`` are its own settings, with underscores for dots.

        Raises:
            ApiError: it exists, or what was asked for is not allowed.
        """
        self._loop.run(chores.create_topic, self._inside, name, partitions, configs)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            ApiError: there is none of that name.
        """
        self._loop.run(chores.delete_topic, self._inside, name)

    def seed(self, topic: str, records: Iterable[Seed]) -> list[Record]:
        """Put records into a topic, which is made if it is not there; what they are there.

        Args:
            topic: its name.
            records: each a value, a tuple of a key and a value, or a dict of ``partition``,
                ``key``, ``value``, ``headers``, ``timestamp``.

        Raises:
            ApiError: the broker refused some; those of partitions before are there.
            TypeError: one of them is no record; nothing was put there.
            ValueError: the same, or there is no such partition.
        """
        return self._loop.run(chores.seed, self._inside, topic, list(records))

    def load(self, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
        """Put the records of a file of JSON lines into their topics.

        Raises:
            OSError: the file cannot be read.
            ValueError: a line is not what it should be; nothing was put anywhere.
        """
        return self._loop.run(chores.load, self._inside, path)

    def apply_retention(self) -> None:
        """Remove what is too old or too much by now (``log.retention.check.interval.ms``)."""
        self._loop.run(chores.apply_retention, self._inside)

    def wait_for_records(
        self,
        topic: str,
        count: int = 1,
        *,
        partition: int | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> list[Record]:
        """Wait until a topic has this many records, or more; gives them."""
        return self._wait(self._enough_records(topic, count, partition), seconds)

    def wait_for_requests(
        self,
        apis: Apis = None,
        count: int = 1,
        *,
        topic: str | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> list[SeenRequest]:
        """Wait until this many requests have come; gives them."""
        return self._wait(self._enough_requests(apis, count, topic), seconds)

    def wait_for_group(
        self,
        id: str,
        state: str = "Stable",
        *,
        members: int | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> GroupView:
        """Wait until a group is in a state, and has this many members; gives it."""
        return self._wait(self._group_in_state(id, state, members), seconds)

    def wait_for_offset(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        seconds: float = WAIT_SECONDS,
    ) -> GroupView:
        """Wait until a group has committed an offset, or a later one; gives it."""
        return self._wait(self._committed(group, topic, partition, offset), seconds)

    def _wait(self, awaited: chores.Awaited[T], seconds: float) -> T:
        found: T = self._loop.run(chores.until_at_most, self._inside, awaited, seconds)
        return found

    def _call(self, function: Callable[[], T]) -> T:
        return self._loop.call(function)

    def _log_lines(self) -> list[tuple[float, str]]:
        logged = self._logged.page(len(self._logged))
        return [
            *super()._log_lines(),
            *((line.time, f"{line.level} {line.logger}: {line.text}") for line in logged),
        ]

    def __repr__(self) -> str:
        return f"<ThreadedBroker at {self.bootstrap_servers}>"


@contextmanager
def broker(
    settings: Mapping[str, object] | None = None,
    /,
    *,
    brokers: int = 1,
    topics: Topics | None = None,
    tls: bool = False,
    sasl: str | None = None,
    **keywords: object,
) -> Iterator[ThreadedBroker]:
    """Run a broker in a thread for as long as the block lasts.

    In memory and on a free port of 127.0.0.1 by default. Usable in synchronous, asyncio and trio
    programs; nothing of it is left when the block has ended.

    Args:
        settings: Kafka's broker settings by their dotted keys.
        brokers: how many nodes it is, over the same data.
        topics: which there are from the beginning: names, or a dict of names, each with how many
            partitions it has, or with a dict of ``partitions`` and the topic's own settings.
        tls: its listener speaks TLS, with a certificate that is made for it.
        sasl: clients have to log in, by ``PLAIN``, ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
        keywords: settings with underscores, as in ``num_partitions=3``; they win.

    Raises:
        ConfigError: a setting is unknown or its value is not allowed.
        OSError: a listener cannot be bound, or the data folder cannot be used.
        ApiError: a topic cannot be made.
        TypeError: ``topics`` is none of what is allowed.
    """
    wanted = wanted_topics(topics)
    security = security_of(tls=tls, sasl=sasl)
    started: Future[tuple[ThreadedBroker, Callable[[], None]]] = Future()
    given_up: Future[None] = Future()  # done when nobody waits for the start any more
    ended: Future[None] = Future()

    async def serve() -> None:
        token = trio.lowlevel.current_trio_token()
        stop = trio.Event()
        with trio.CancelScope() as scope, _logged() as logged:

            def cancel(_: object) -> None:
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(scope.cancel)

            given_up.add_done_callback(cancel)
            security.check({**(settings or {}), **keywords})
            given = {**security.settings, **(settings or {}), **keywords}
            async with open_broker(given, brokers=brokers) as running:
                await _prepare(running, wanted, security)
                async with trio.open_nursery() as nursery:
                    loop = _Loop(token, nursery, ended, threading.get_ident())
                    threaded = ThreadedBroker(running, loop, security.client, logged)
                    started.set_result((threaded, lambda: token.run_sync_soon(stop.set)))
                    await stop.wait()
                    nursery.cancel_scope.cancel(reason="the broker is stopping")

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
        with _errors_told(threaded):
            yield threaded
    finally:
        if not ended.done():
            try:
                stop()
            except trio.RunFinishedError:
                pass  # it ended by an error, which is raised below
        thread.join()
        ended.result()


@contextmanager
def _errors_told(threaded: ThreadedBroker) -> Iterator[None]:
    """Tell at the end of the block what functions of the test have raised in the broker."""
    try:
        yield
    except BaseException as error:  # boundary: it goes on; told is what may have led to it
        threaded.faults.explain(error)
        raise
    threaded.faults.raise_errors()


async def _prepare(running: Broker, topics: Wanted, security: Security) -> None:
    inside = inside_of(running)
    await add_users(inside, security.client)
    for name, (partitions, configs) in topics.items():
        await chores.create_topic(inside, name, partitions, configs)


@contextmanager
def _logged() -> Iterator[LogRing]:
    """Keep what this thread logs of trionet: what its broker says, and no other's."""
    ring, root = LogRing(logging.NOTSET), logging.getLogger("trionet")
    thread = threading.get_ident()
    ring.addFilter(lambda record: record.thread == thread)
    root.addHandler(ring)
    try:
        yield ring
    finally:
        root.removeHandler(ring)
