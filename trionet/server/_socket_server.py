"""The server: its listeners, processors, request channel and handlers, in one nursery.

(Kafka: SocketServer.) The server binds every listener, and then starts the handlers, the processors
and the acceptors, in this order, so that an accepted connection always has a processor. A graceful
stop ends accepting and reading, sends all pending responses, and closes the channels. Cancellation
closes everything immediately.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from .._util._logging import get_logger
from ..errors import ConfigError, LocalProtocolError
from ..metrics._request_times import RequestTimes
from ..net._network import SYSTEM, Network
from ..net._selector import Selector
from ..net.wire._close_reason import CloseReason
from ..net.wire._connecting import ListeningSocket
from ..net.wire._endpoint import Endpoint
from ..net.wire._memory_pool import MemoryPool
from ._acceptor import Acceptor
from ._channel_builder import PLAINTEXT, ChannelBuilder, ListenerSecurity
from ._closed_connections import ClosedConnections
from ._dialect import SIZE_PREFIXED, Dialect
from ._handler_pool import Handler, HandlerPool, NeverWaits
from ._processor import Processor
from ._recorder import LoopFaults, Recorder, Recording
from ._request_channel import RequestChannel
from ._server_config import ServerConfig
from ._server_statistics import ServerStatistics, combined
from ._shared import Shared
from .quotas._connection_quotas import ConnectionQuotas

logger = get_logger("trionet.server")


class SocketServer:
    """A server for length-prefixed requests.

    Args:
        handler: ``async (request) -> response``; see :mod:`trionet.server._request_channel`. If it
            returns None, ``request.respond(response)`` must be called later, from any task.
        endpoints: the endpoints to listen on; port 0 selects a free port.
        config: limits and sizes.
        security: TLS and authentication by listener name; listeners without an entry use
            plaintext without authentication.
        dialect: the framing of the protocol.
        network: provides the sockets.
        recorder: receives completed requests and closed connections.
        never_waits: returns whether the handler is certain to handle a request without a
            checkpoint; a processor may then call the handler directly.

    Raises:
        ConfigError: ``endpoints`` is empty, two endpoints have the same listener name, the security
            of a listener does not match its protocol, ``security`` or a setting names an unknown
            listener, or a limit is not allowed.

    Attributes:
        endpoints: the endpoints that the server listens on, with the bound ports once it is
            running.
        quotas: the connection quotas; their limits can be changed while the server is running.
        closed_connections: the most recently closed connections.
        times: the times of requests to which no handler assigned a kind.
        pool: the memory for large requests; None for no limit.
        recording: passes completed requests and closed connections to the recorder.
    """

    def __init__(
        self,
        handler: Handler,
        endpoints: Sequence[Endpoint],
        config: ServerConfig | None = None,
        security: Mapping[str, ListenerSecurity] | None = None,
        dialect: Dialect = SIZE_PREFIXED,
        network: Network = SYSTEM,
        recorder: Recorder | None = None,
        never_waits: NeverWaits | None = None,
    ) -> None:
        self.config: ServerConfig = config or ServerConfig()
        config = self.config
        self.endpoints: list[Endpoint] = list(endpoints)
        names = [endpoint.listener_name for endpoint in endpoints]
        if not names:
            raise ConfigError("no endpoint to listen on; at least one is required")
        if len(set(names)) < len(names):
            raise ConfigError(f"listener names {', '.join(names)}: each must be unique")
        self._security = dict(security or {})
        for name in self._security.keys() - names:
            raise ConfigError(f"security contains {name}, which is not one of the listeners")
        for endpoint in endpoints:
            self._security.get(endpoint.listener_name, PLAINTEXT).check(endpoint)
        config.check_names(names)
        self.request_channel: RequestChannel = RequestChannel(config.queued_max_requests)
        if network.is_virtual:  # results must not depend on the speed of the machine
            self.request_channel.ns_per_wakeup_max = 2**62
        self.closed_connections: ClosedConnections = ClosedConnections()
        self.times: RequestTimes = RequestTimes("")
        self.pool: MemoryPool | None = MemoryPool.of(
            config.queued_max_request_bytes, config.socket_request_max_bytes
        )
        self._slot_freed = trio.lowlevel.ParkingLot()
        self.quotas: ConnectionQuotas = ConnectionQuotas(
            config.limits,
            protected_listener=config.protected_listener,
            windows=config.quota_window_num,
            window_seconds=config.quota_window_size_seconds,
            on_slot_free=self._slot_freed.unpark_all,
            on_exceeded=self._on_exceeded,
        )
        self._handler = handler
        self._dialect = dialect
        self._network = network
        self._log = _PrefixedLog(logger, {"prefix": f"[SocketServer broker {config.node_id}]"})
        self.faults: LoopFaults = LoopFaults(self._log)
        self.recording: Recording = Recording(recorder, self.faults)
        self._shared = Shared(
            request_channel=self.request_channel,
            handler=handler,
            never_waits=never_waits,
            quotas=self.quotas,
            closed_connections=self.closed_connections,
            times=self.times,
            log=self._log,
            faults=self.faults,
            recording=self.recording,
        )
        self._listeners: dict[str, Acceptor] = {}
        self._running: list[Processor] = []  # including those that are closing their channels
        # The sum of processors that have ended; there may be many of them.
        self._ended = combined([])
        self._processor_ids = itertools.count()
        self._handlers: HandlerPool | None = None
        self._nursery: trio.Nursery | None = None
        self._change = trio.Lock()  # serializes changes while the server runs
        self._has_begun = False
        self._stop_requested = trio.Event()
        self._stopped = trio.Event()

    async def run(
        self,
        *,
        ready: Mapping[str, trio.Event] | None = None,
        task_status: trio.TaskStatus[list[Endpoint]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until :meth:`stop` or cancellation.

        Reports ``started`` with the bound endpoints once connections are accepted. If :meth:`stop`
        has already been called, it returns without binding any endpoint.

        Args:
            ready: by listener name, an event to wait for before the listener is bound; listeners
                without an event are bound immediately (Kafka: enableRequestProcessing, KIP-801).
            task_status: receives the list :attr:`endpoints`.

        Raises:
            ConfigError: ``ready`` names an unknown listener.
            OSError: a listener cannot be bound.
        """
        ready = ready or {}
        late = self._take_late(ready)
        if self._stop_requested.is_set():
            await trio.lowlevel.checkpoint()
            task_status.started(self.endpoints)
            return
        self._has_begun = True
        listening: list[ListeningSocket] = []
        try:
            for index, endpoint in enumerate(self.endpoints):
                self.endpoints[index], sock = self._bind(endpoint)
                listening.append(sock)
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    await self._start(nursery, listening)
                    task_status.started(self.endpoints)
                    async with trio.open_nursery() as waiting:
                        for name, endpoint in late.items():
                            waiting.start_soon(self._add_when, ready[name], endpoint)
                        await self._stop_requested.wait()
                        waiting.cancel_scope.cancel(reason="the server is stopping")
                finally:
                    self._nursery = None
                for listener in self._listeners.values():
                    listener.stop_accepting()
                await self._drain()
                nursery.cancel_scope.cancel(reason="the server is stopping")
        finally:
            for name in self._listeners:
                self.quotas.remove_listener(name)
            self._listeners.clear()
            for sock in listening:
                sock.close()
            self._stopped.set()

    @property
    def is_stopping(self) -> bool:
        """Whether :meth:`stop` was called: no connection is accepted any more."""
        return self._stop_requested.is_set()

    async def stop(self) -> None:
        """Stop gracefully: send all pending responses, then close every channel.

        If the server is not running yet, :meth:`run` will return immediately.

        If this wait is cancelled, the server still stops; to end it immediately, cancel
        :meth:`run`.

        Raises:
            LocalProtocolError: this was called in a handler, or in a task that one waits for.
        """
        handlers = self._handlers
        if handlers is not None and handlers.waits_for(trio.lowlevel.current_task()):
            raise LocalProtocolError(
                "stop() was called in a handler, but waits for the responses of all handlers;"
                " start it as a task in a nursery outside the handler"
            )
        self._stop_requested.set()
        if not self._has_begun:
            self._stopped.set()
        await self._stopped.wait()

    @property
    def processors(self) -> list[Processor]:
        """The active processors of all listeners."""
        return [each for listener in self._listeners.values() for each in listener.processors]

    def handler_seconds(self) -> float:
        """Return the total run time of all handler tasks (num.io.threads), in seconds."""
        return self._handlers.available_seconds() if self._handlers is not None else 0.0

    def statistics(self) -> ServerStatistics:
        """Return the current totals and queue sizes."""
        running = [ServerStatistics.of(processor.counts) for processor in self._running]
        return attrs.evolve(
            combined([self._ended, *running]),
            request_queue_size=len(self.request_channel),
            unexpected_errors=self.faults.count,
        )

    def close_connection(self, id: str, detail: str = "") -> bool:
        """Close one connection now, in any state, with the reason LOCAL_CLOSE.

        Args:
            id: the connection id.
            detail: the cause, which is reported with the reason.

        Returns:
            Whether the connection was found.
        """
        for processor in self.processors:
            channel = processor.selector.channels.get(id)
            if channel is not None:
                processor.selector.disconnect(channel, CloseReason.LOCAL_CLOSE, detail)
                processor.selector.wakeup()
                return True
        return False

    # Changes while it runs.

    async def resize_processors(self, count: int, listener_name: str | None = None) -> None:
        """Change the number of processors per listener (``num.network.threads``).

        When the number is reduced, the connections of the surplus processors are closed after
        their pending responses have been sent, or after one second.

        Args:
            count: the new number, 1 or more; between half and twice the current number, as in
                Kafka.
            listener_name: the listener to change; None for all listeners that are not in
                ``listener_network_threads``.

        Raises:
            ConfigError: the number is not allowed; nothing was changed.
            LocalProtocolError: the listener does not exist, or the server is not running.
        """
        own = self.config.listener_network_threads
        async with self._change:
            self._running_nursery()
            listeners = [
                each
                for name, each in self._listeners.items()
                if (name not in own if listener_name is None else name == listener_name)
            ]
            if listener_name is not None and not listeners:
                raise LocalProtocolError(f"unknown listener {listener_name}")
            for listener in listeners:
                check_resize("num.network.threads", len(listener.processors), count)
            for listener in listeners:
                await listener.resize(count)

    def resize_handlers(self, count: int) -> None:
        """Change the number of handler tasks (``num.io.threads``).

        As in Kafka, the new number must be between half and twice the current number.

        Raises:
            ConfigError: the number is not allowed.
            LocalProtocolError: the server is not running.
        """
        if self._handlers is None or self._nursery is None:
            raise LocalProtocolError("the server is not running")
        check_resize("num.io.threads", len(self._handlers), count)
        self._handlers.resize(count)

    async def add_listener(
        self, endpoint: Endpoint, security: ListenerSecurity = PLAINTEXT
    ) -> Endpoint:
        """Listen on another endpoint. If cancelled, the listener is not added.

        Returns:
            The endpoint with the bound port.

        Raises:
            ConfigError: ``security`` does not match the endpoint's protocol.
            LocalProtocolError: a listener of that name exists, or the server is not running.
            OSError: the endpoint cannot be bound.
        """
        name = endpoint.listener_name
        async with self._change:
            self._running_nursery()
            security.check(endpoint)
            if name in self._listeners:
                raise LocalProtocolError(f"listener {name} already exists")
            bound, sock = self._bind(endpoint)
            self._security[name] = security
            try:
                listener = await self._start_listener(bound, sock)
                listener.start_accepting()
            except BaseException:  # cancelled, or the server is stopping: undo the start
                sock.close()
                if name in self._listeners:
                    self._listeners.pop(name).end_processors()
                    self.quotas.remove_listener(name)
                raise
            self.endpoints.append(bound)
            self._log.info("started listener %s", bound)
            return bound

    async def remove_listener(self, listener_name: str) -> None:
        """Close a listener and its connections; other listeners are not affected.

        Once started, the removal is completed even if this call is cancelled.

        Raises:
            LocalProtocolError: no listener has that name.
        """
        async with self._change:
            listener = self._listeners.pop(listener_name, None)
            if listener is None:
                raise LocalProtocolError(f"unknown listener {listener_name}")
            self.endpoints = [each for each in self.endpoints if each != listener.endpoint]
            await listener.stop()
            self.quotas.remove_listener(listener_name)
            self._log.info("stopped listener %s", listener.endpoint)

    # Parts of the start and the stop.

    def _take_late(self, ready: Mapping[str, trio.Event]) -> dict[str, Endpoint]:
        """Remove the listeners that wait for an event from ``endpoints``, and return them."""
        late = {each.listener_name: each for each in self.endpoints if each.listener_name in ready}
        for name in ready.keys() - late:
            raise ConfigError(f"ready contains {name}, which is not one of the listeners")
        self.endpoints = [each for each in self.endpoints if each.listener_name not in ready]
        return late

    async def _add_when(self, event: trio.Event, endpoint: Endpoint) -> None:
        await event.wait()
        security = self._security.get(endpoint.listener_name, PLAINTEXT)
        await self.add_listener(endpoint, security)

    def _bind(self, endpoint: Endpoint) -> tuple[Endpoint, ListeningSocket]:
        """Bind a listener. Returns its endpoint with the bound port, and its socket."""
        sock = self._network.listen(
            endpoint,
            backlog=self.config.socket_listen_backlog_size,
            receive_buffer_bytes=self.config.socket_receive_buffer_bytes,
        )
        return endpoint.with_port(sock.getsockname()[1]), sock

    async def _start(self, nursery: trio.Nursery, listening: list[ListeningSocket]) -> None:
        """Start the handlers, the processors, and then the acceptors (KAFKA-6893)."""
        await trio.lowlevel.checkpoint()
        config = self.config
        self._handlers = HandlerPool(
            self.request_channel,
            self._handler,
            f"data-plane-kafka-request-handler-{config.node_id}",
            nursery,
            self._log,
        )
        self._handlers.resize(config.num_io_threads)
        for endpoint, sock in zip(self.endpoints, listening, strict=True):
            await self._start_listener(endpoint, sock)
        for listener in self._listeners.values():
            listener.start_accepting()
            self._log.info("started listener %s", listener.endpoint)

    async def _start_listener(self, endpoint: Endpoint, sock: ListeningSocket) -> Acceptor:
        config, name = self.config, endpoint.listener_name
        self.quotas.add_listener(name, config.listener_limits.get(name))
        builder = ChannelBuilder(
            endpoint,
            self._security.get(name, PLAINTEXT),
            config.socket_request_max_bytes,
            self.pool,
            self._dialect,
            self._network,
        )
        listener = Acceptor(
            endpoint,
            sock,
            self._shared,
            config,
            self._slot_freed,
            self._network,
            partial(self._run_processor, endpoint, builder),
            self._processor_ids,
            self._running_nursery,
        )
        self._listeners[name] = listener
        count = config.listener_network_threads.get(name, config.num_network_threads)
        await listener.resize(count)
        return listener

    async def _run_processor(
        self,
        endpoint: Endpoint,
        builder: ChannelBuilder,
        id: int,
        *,
        task_status: trio.TaskStatus[Processor],
    ) -> None:
        """Run a processor, reporting it as started once it can be assigned connections."""
        shared, config = self._shared, self.config
        async with (
            self._network.open_readiness(config.readiness) as readiness,
            trio.open_nursery() as own,
        ):
            selector = Selector(
                readiness,
                shared.log_channel_error,
                idle_seconds_max=config.idle_seconds_max,
                authentication_seconds_max=config.authentication_timeout_ms / 1000,
                pool=self.pool,
                shuffle=self._network.shuffle,
                times_channels=config.times_connections,
                now_ms=self._network.now_ms,
            )
            processor = Processor(id, endpoint, builder, shared, selector)
            own.start_soon(selector.alarm.keep_time, name=f"alarm of processor {id}")
            self._running.append(processor)
            task_status.started(processor)
            try:
                await processor.run()
            finally:
                self._running.remove(processor)
                ended = attrs.evolve(ServerStatistics.of(processor.counts), response_queue_size=0)
                self._ended = combined([self._ended, ended])
                own.cancel_scope.cancel(reason="the processor has ended")

    def _running_nursery(self) -> trio.Nursery:
        """Return the server's nursery; raises LocalProtocolError unless the server is running."""
        if self._nursery is None:
            raise LocalProtocolError("the server is not running")
        return self._nursery

    async def _drain(self) -> None:
        """Wait until the response to every received request has been sent."""
        async with trio.open_nursery() as nursery:
            for processor in self._running:  # surplus ones, too
                nursery.start_soon(processor.drain)

    def _on_exceeded(self) -> None:
        for processor in self.processors:
            processor.selector.wakeup()


def check_resize(key: str, old: int, new: int) -> None:
    """Check a new thread count against Kafka's bounds for a change in a running server.

    (Kafka: DynamicThreadPool.) The new count must be between half the current count, rounded down
    but at least 1, and twice the current count.

    Args:
        key: the setting, for the error message.
        old: the current count.
        new: the new count; the current count is always allowed.

    Raises:
        ConfigError: the new count is not allowed.
    """
    lowest, highest = max(1, old // 2), 2 * old
    if not lowest <= new <= highest:
        raise ConfigError(
            f"{key} cannot change from {old} to {new} in one step; allowed: {lowest} to {highest}"
        )


class _PrefixedLog(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[str, Any]:
        assert self.extra is not None
        return f"{self.extra['prefix']} {msg}", kwargs
