"""A broker in its own thread, for programs that block.

The problem: a synchronous client blocks the test's thread, so a broker in the same thread could
never respond. Also, a test must be able to inspect the broker, wait for it and inject faults from
any thread, although nothing in the broker is thread-safe.

The choice: the broker runs in its own thread, under ``trio.run``. Each access is a function that
the broker's loop calls (``TrioToken.run_sync_soon``), and its result comes back through a
``concurrent.futures.Future``. Waiting for a result also ends when the loop ends, so that a broker
crash cannot hang the test. Calls from the broker's own thread, such as those made by ``when=``,
run directly.

Rejected: a broker in a subprocess (its state and its errors would have to be serialized, and
starting it takes a hundred times as long) and ``trio.from_thread`` (it only works in threads
started by trio). Reconsider if tests need more CPU time than one process can use.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import trio

from .._util._logging import get_logger
from ..broker import Broker, BrokerStatistics, LastCleaning, open_broker
from ..broker.config._broker_config import check_settings
from ..broker.run._new_topics import Topics
from ..metrics._log_ring import LogRing
from . import _operations as operations
from ._asyncio_waits import WAIT_SECONDS, AsyncioWaits, check_blocks_no_loop
from ._broker_loop import BrokerLoop, check_threads, result_of
from ._client_timings import Kind
from ._controls import Controls
from ._internals import internals_of
from ._operations import GroupView, TransactionView
from ._records import Record, Seed
from ._secured import ClientSecurity, add_users, client_config, security_of
from ._seen_requests import SeenRequest
from ._system_clock import SystemClock, SystemClockNetwork, now_ms
from .faults._faults import Apis

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

T = TypeVar("T")


class ThreadedBroker(Controls):
    """A running broker, usable from any thread; created by :func:`broker`.

    It has the methods of :class:`~trionet.testing.BrokerControl`, as blocking methods. Methods that
    wait take a timeout and raise ``TimeoutError`` when it expires. The class has more than 25
    methods because each broker operation needs a method that crosses threads.

    Attributes:
        bootstrap_servers: the address for clients to connect to, such as ``"127.0.0.1:50123"``.
        cluster_id: the cluster id that clients see.
        security: the trust anchor and credentials that clients need.
        asyncio: the waits and ``seed``, for a test that uses asyncio: ``await
            broker.asyncio.wait_for_records`` and so on. The blocking waits raise an error where
            they would block a running loop.
    """

    def __init__(
        self, broker: Broker, loop: BrokerLoop, security: ClientSecurity, logged: LogRing
    ) -> None:
        super().__init__(broker, loop.call)
        self._broker = broker
        self._loop = loop
        self._logged = logged
        self.bootstrap_servers: str = broker.bootstrap_servers
        self.cluster_id: str = broker.cluster_id
        self.security = security
        self.asyncio: AsyncioWaits = AsyncioWaits(self._internals, self._conditions, loop)

    def statistics(self) -> BrokerStatistics:
        """Return counters and current values of the broker."""
        return self._call(self._broker.statistics)

    # Nodes, of which there are several with ``brokers=``.

    @property
    def node_ids(self) -> list[int]:
        """The ids of all nodes."""
        return self._call(lambda: self._broker.node_ids)

    @property
    def running_nodes(self) -> list[int]:
        """The ids of the nodes that are running."""
        return self._call(lambda: self._broker.running_nodes)

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of the node that leads a partition; -1 while the partition has no leader.

        Raises:
            ValueError: the partition does not exist.
        """
        return self._call(lambda: self._broker.leader(topic, partition))

    def coordinator(self, group: str) -> int:
        """Return the id of a group's coordinator; -1 while the group has no coordinator."""
        return self._call(lambda: self._broker.coordinator(group))

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition; see :meth:`trionet.Broker.move_leader`.

        Raises:
            ValueError: the partition does not exist, or the node cannot lead it.
        """
        self._loop.run(self._broker.move_leader, topic, partition, node)

    def move_coordinator(self, group: str, node: int) -> None:
        """Make a node the coordinator of a group; see :meth:`trionet.Broker.move_coordinator`.

        Raises:
            ValueError: the node does not exist or is stopped.
        """
        self._loop.run(self._broker.move_coordinator, group, node)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the id of a transactional id's coordinator; -1 while there is none."""
        return self._call(lambda: self._broker.transaction_coordinator(transactional_id))

    def move_transaction_coordinator(self, transactional_id: str, node: int) -> None:
        """Move a coordinator; see :meth:`trionet.Broker.move_transaction_coordinator`.

        Raises:
            ValueError: the node does not exist or is stopped.
        """
        self._loop.run(self._broker.move_transaction_coordinator, transactional_id, node)

    def elect_preferred_leaders(self) -> None:
        """Make each partition's first replica its leader, wherever that replica is running."""
        self._loop.run(self._broker.elect_preferred_leaders)

    def compact(self, topic: str) -> dict[int, LastCleaning]:
        """Clean a compacted topic now; see :meth:`trionet.Broker.compact`.

        Raises:
            ValueError: the topic does not exist, or is not compacted.
        """
        return self._loop.run(self._broker.compact, topic)

    def stop(self, node: int) -> None:
        """Stop a node; see :meth:`trionet.Broker.stop`.

        Raises:
            ValueError: the node does not exist.
        """
        self._loop.run(self._broker.stop, node)

    def start(self, node: int) -> None:
        """Restart a stopped node on the same ports; see :meth:`trionet.Broker.start`.

        Raises:
            ValueError: the node does not exist.
            OSError: another process is using one of the ports.
        """
        self._loop.run(self._broker.start, node)

    def client_config(self, client: str, kind: Kind | None = None) -> dict[str, Any]:
        """Return the connection settings for a client library.

        Args:
            client: the library: ``confluent-kafka``, ``kafka-python``, ``aiokafka`` or ``java``;
                the latter are Kafka's own keys.
            kind: ``producer``, ``consumer`` or ``admin``, to include timings for tests: short
                backoffs, heartbeats, sessions and intervals, so that retries and rebalances take
                milliseconds. By default, the client's own timings are left as they are.

        Raises:
            ValueError: the library or the kind is unknown.
        """
        return client_config(client, self.bootstrap_servers, self.security, kind)

    def create_topic(self, name: str, partitions: int | None = None, **configs: object) -> None:
        """Create a topic. ``configs`` are topic configs, with underscores instead of dots.

        Raises:
            ApiError: the topic exists, or an argument is invalid.
        """
        self._loop.run(operations.create_topic, self._internals, name, partitions, configs)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            ApiError: the topic does not exist.
        """
        self._loop.run(operations.delete_topic, self._internals, name)

    def seed(self, topic: str, records: Iterable[Seed]) -> list[Record]:
        """Append records to a topic, creating it if needed. Returns the appended records.

        Args:
            topic: the name of the topic.
            records: the records; each is a value, a tuple of a key and a value, or a dict with
                any of ``partition``, ``key``, ``value``, ``headers`` and ``timestamp``, as in a
                line of :meth:`load`, where keys and values may also be JSON.

        Raises:
            ApiError: the broker rejected a batch; earlier batches were appended.
            TypeError: a record is invalid; nothing was appended.
            ValueError: a field is invalid, or the partition does not exist; nothing was appended.
        """
        return self._loop.run(operations.seed, self._internals, topic, list(records))

    def load(self, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
        """Append the records in a JSON Lines file to their topics. Returns the records by topic.

        Raises:
            OSError: the file cannot be read.
            ValueError: a line is invalid; nothing was appended.
        """
        return self._loop.run(operations.load, self._internals, path)

    def apply_retention(self) -> None:
        """Apply retention now, without waiting for ``log.retention.check.interval.ms``."""
        self._loop.run(operations.apply_retention, self._internals)

    def expire_transactions(self, ids: Iterable[str] | None = None) -> list[str]:
        """Abort ongoing transactions, as if their timeouts had expired. Returns their ids.

        Producers of the first protocol (TV1) are fenced by that; with TV2 they abort and go on.
        Markers are written, unless they are held or cannot be written now.

        Args:
            ids: the transactional ids; None for all.

        Raises:
            LookupError: a transactional id does not exist; nothing was aborted.
        """
        given = ids if ids is None or isinstance(ids, str) else list(ids)
        return self._loop.run(operations.expire_transactions, self._internals, given)

    def wait_for_records(
        self,
        topic: str,
        count: int = 1,
        *,
        partition: int | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> list[Record]:
        """Wait until a topic has at least ``count`` records. Returns the records.

        Args:
            topic: the topic name; the topic need not exist yet.
            count: the minimum number of records, including those of open and aborted transactions.
            partition: the partition whose records are counted; None for all partitions.
            seconds: the timeout, in seconds.

        Raises:
            LocalProtocolError: an event loop runs in this thread; see :attr:`asyncio`.
            TimeoutError: the timeout expired; the message describes the current state.
            LookupError: the topic exists, but the partition does not.
        """
        return self._wait(self._conditions.enough_records(topic, count, partition), seconds)

    def wait_for_requests(
        self,
        apis: Apis = None,
        count: int = 1,
        *,
        topic: str | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> list[SeenRequest]:
        """Wait until at least ``count`` requests have been received. Returns the requests.

        Args:
            apis: one API or several, by name or number; None for all.
            count: the minimum number of requests.
            topic: the topic that the requests must be about; None for any.
            seconds: the timeout, in seconds.

        Raises:
            LocalProtocolError: an event loop runs in this thread; see :attr:`asyncio`.
            ValueError: an API is unknown.
            TimeoutError: the timeout expired; the message describes the current state.
        """
        return self._wait(self._conditions.enough_requests(apis, count, topic), seconds)

    def wait_for_group(
        self,
        id: str,
        state: str = "Stable",
        *,
        members: int | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> GroupView:
        """Wait until a group has the given state and number of members. Returns the group.

        Args:
            id: the group id; the group need not exist yet.
            state: the state, by Kafka's name; ``Dead`` if there is no group.
            members: the exact number of members; None for any number.
            seconds: the timeout, in seconds.

        Raises:
            LocalProtocolError: an event loop runs in this thread; see :attr:`asyncio`.
            ValueError: there is no such state.
            TimeoutError: the timeout expired; the message describes the current state.
        """
        return self._wait(self._conditions.group_in_state(id, state, members), seconds)

    def wait_for_offset(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        seconds: float = WAIT_SECONDS,
    ) -> GroupView:
        """Wait until a group's committed offset is at least ``offset``. Returns the group.

        Args:
            group: the group id; the group need not exist yet.
            topic: the name of the topic.
            offset: the minimum committed offset.
            partition: the partition number.
            seconds: the timeout, in seconds.

        Raises:
            LocalProtocolError: an event loop runs in this thread; see :attr:`asyncio`.
            TimeoutError: the timeout expired; the message describes the current state.
        """
        return self._wait(self._conditions.committed(group, topic, partition, offset), seconds)

    def wait_for_transaction(
        self, id: str, state: str, *, seconds: float = WAIT_SECONDS
    ) -> TransactionView:
        """Wait until a transactional id has the given state. Returns the transaction.

        Args:
            id: the transactional id, which need not exist yet.
            state: the state, by Kafka's name; ``Dead`` once the id has expired.
            seconds: the timeout, in seconds.

        Raises:
            LocalProtocolError: an event loop runs in this thread; see :attr:`asyncio`.
            ValueError: there is no such state.
            TimeoutError: the timeout expired; the message describes the current state.
        """
        return self._wait(self._conditions.transaction_in_state(id, state), seconds)

    def _wait(self, condition: operations.Condition[T], seconds: float) -> T:
        if not self._loop.is_here:
            check_blocks_no_loop()
        found: T = self._loop.run(operations.wait_with_timeout, self._internals, condition, seconds)
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
    """Run a broker in a thread for the duration of the block.

    By default, the broker listens on a free port of 127.0.0.1 and keeps its data in memory, so
    nothing remains after the block. Synchronous, asyncio and trio programs can use the broker.

    Args:
        settings: Kafka's broker settings, by their dotted keys.
        brokers: the number of nodes, which share the same data.
        topics: the topics to create at startup; see :func:`trionet.open_broker`.
        tls: whether the listener uses TLS, with a generated certificate.
        sasl: the mechanism with which clients must authenticate: ``PLAIN``, ``SCRAM-SHA-256`` or
            ``SCRAM-SHA-512``.
        keywords: settings with underscores instead of dots, such as ``num_partitions=3``;
            they take precedence.

    Raises:
        ConfigError: a setting is unknown, or its value is not allowed.
        OSError: a listener cannot be bound, or the data directory cannot be used.
        ApiError: a topic cannot be created.
        TypeError: ``settings`` or ``topics`` is of the wrong kind.
        LocalProtocolError: gevent has replaced the threads and sockets of this process.

    The broker keeps the system's time, whatever the clock of the program is made to say. In a fork
    of the process, the end of the block does nothing.
    """
    check_threads()
    check_settings(settings)
    security = security_of(tls=tls, sasl=sasl)
    started: Future[tuple[ThreadedBroker, Callable[[], None]]] = Future()
    given_up: Future[None] = Future()  # done when the caller no longer waits for the start
    ended: Future[None] = Future()

    async def serve() -> None:
        token = trio.lowlevel.current_trio_token()
        stop = trio.Event()
        with trio.CancelScope() as scope, _logged() as logged:

            def cancel(_: object) -> None:
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(scope.cancel)

            # Runs at once if the caller has given up before this thread got here: the callback of a
            # done future is called by add_done_callback itself, so no cancellation is lost.
            given_up.add_done_callback(cancel)
            security.check({**(settings or {}), **keywords})
            merged = {**security.settings, **(settings or {}), **keywords}
            async with open_broker(
                merged, brokers=brokers, topics=topics, network=SystemClockNetwork()
            ) as running:
                await add_users(internals_of(running), security.client)
                async with trio.open_nursery() as nursery:
                    loop = BrokerLoop(token, nursery, ended, threading.get_ident())
                    threaded = ThreadedBroker(running, loop, security.client, logged)
                    # The caller may use the broker from here on; the loop needs the open nursery.
                    started.set_result((threaded, lambda: token.run_sync_soon(stop.set)))
                    await stop.wait()
                    nursery.cancel_scope.cancel(reason="the broker is stopping")

    def run() -> None:
        try:
            trio.run(serve, clock=SystemClock())
        except BaseException as error:  # boundary: raised in the caller's thread  # noqa: ASYNC103
            # An error is raised once: by the start if the caller still waits for that, or else at
            # the end of its block, through `ended`.
            if not started.done():
                started.set_exception(error)
                ended.set_result(None)
            else:
                ended.set_exception(error)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name="trionet-broker", daemon=True)
    process = os.getpid()
    try:
        thread.start()
        threaded, stop = result_of(started)
    except BaseException:  # an error of the start, or Ctrl-C during it
        given_up.set_result(None)
        with suppress(RuntimeError):  # the thread was not started yet; it ends at once when it is
            thread.join()
        raise
    try:
        with _errors_reported(threaded):
            yield threaded
    finally:
        if os.getpid() == process:  # a fork of it has no such thread
            # The loop may crash between the check and the call, which then has nothing to stop.
            if not ended.done():
                try:
                    stop()
                except trio.RunFinishedError:
                    pass  # it crashed; the error is raised below
            thread.join()
            ended.result()


@contextmanager
def _errors_reported(threaded: ThreadedBroker) -> Iterator[None]:
    """At the end of the block, raise the errors that the test's functions raised in the broker."""
    try:
        yield
    except BaseException as error:  # boundary: raised again, with a note on a fault's error
        threaded.faults.explain(error)
        raise
    threaded.faults.raise_errors()


class _Logged(LogRing):
    """The log of one broker, by the broker's clock instead of that of the program under test."""

    def time_of(self, record: logging.LogRecord) -> float:  # noqa: ARG002 -- just logged
        return now_ms() / 1000


@contextmanager
def _logged() -> Iterator[LogRing]:
    """Collect the log records of the current thread, which come only from the broker."""
    ring, root = _Logged(logging.NOTSET), get_logger("trionet")
    thread = threading.get_ident()
    ring.addFilter(lambda record: record.thread == thread)
    root.addHandler(ring)
    try:
        yield ring
    finally:
        root.removeHandler(ring)
