"""Listeners, processors, request channel and handlers under one nursery: start, serve, stop.

(Kafka: SocketServer.) Start: bind every listener, run the processors, then the acceptors, then
report ``started``. Graceful stop: no more accepting and reading, answers that are owed leave, the
channels close. Cancellation is the ungraceful stop, and leaves no socket open either.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import MutableMapping, Sequence
from typing import Any

import attrs
import trio

from ..net.close_reason import CloseReason
from ..net.endpoint import Endpoint
from ..net.readiness import ReadinessKind
from .acceptor import Acceptor, bind
from .handler_pool import Handler, start_handlers
from .processor import Processor
from .request_channel import RequestChannel

logger = logging.getLogger("trionet.server")


@attrs.frozen(kw_only=True)
class ServerConfig:
    """Kafka's settings of the network layer; the names are its keys with dots as underscores.

    Attributes:
        node_id: shown in log lines and task names.
        num_network_threads: processors per listener. They share one loop: more of them divide
            connections, they add no parallelism.
        num_io_threads: handler tasks.
        queued_max_requests: requests that may wait for a handler.
        socket_request_max_bytes: largest request.
        socket_send_buffer_bytes: -1 leaves the system's default.
        socket_receive_buffer_bytes: -1 leaves the system's default.
        socket_listen_backlog_size: connections that the kernel keeps before they are accepted.
        readiness: which readiness backend to use; None takes the best of this system.

    Raises:
        ValueError: a number is below its limit.
    """

    node_id: int = 0
    num_network_threads: int = attrs.field(default=3, validator=attrs.validators.ge(1))
    num_io_threads: int = attrs.field(default=8, validator=attrs.validators.ge(1))
    queued_max_requests: int = attrs.field(default=500, validator=attrs.validators.ge(1))
    socket_request_max_bytes: int = attrs.field(default=104857600, validator=attrs.validators.ge(1))
    socket_send_buffer_bytes: int = 102400
    socket_receive_buffer_bytes: int = 102400
    socket_listen_backlog_size: int = 50
    readiness: ReadinessKind | None = None


@attrs.frozen
class ServerStatistics:
    """What the server did and holds at one moment.

    Attributes:
        connections: open connections.
        connections_created: connections ever set up.
        requests: requests ever received.
        responses: answers whose last byte was given to the kernel.
        bytes_received: payload and framing bytes read, in all.
        bytes_sent: payload and framing bytes written, in all.
        request_queue_size: requests waiting for a handler.
        response_queue_size: answers waiting for their processor.
        request_queue_full: how often a processor had to stop reading.
        closed: connections that ended, by reason.
    """

    connections: int
    connections_created: int
    requests: int
    responses: int
    bytes_received: int
    bytes_sent: int
    request_queue_size: int
    response_queue_size: int
    request_queue_full: int
    closed: dict[CloseReason, int]


class SocketServer:
    """A server for length-prefixed requests.

    Args:
        handler: ``async (request) -> response``; see :mod:`trionet.server.request_channel`.
            Returning None means that ``request.respond(response)`` is called later, by anyone.
        endpoints: where to listen; port 0 takes a free one.
        config: limits and sizes.
    """

    def __init__(
        self,
        handler: Handler,
        endpoints: Sequence[Endpoint],
        config: ServerConfig | None = None,
    ) -> None:
        self.config = config = config or ServerConfig()
        self.endpoints = list(endpoints)
        self.request_channel = RequestChannel(config.queued_max_requests)
        self._handler = handler
        self._log = _PrefixedLog(logger, {"prefix": f"[SocketServer broker {config.node_id}]"})
        self._processors: list[Processor] = []
        self._stop_requested = trio.Event()
        self._stopped = trio.Event()

    async def run(
        self,
        *,
        task_status: trio.TaskStatus[list[Endpoint]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until :meth:`stop` or cancellation.

        Reports ``started`` with the bound endpoints once connections are accepted.

        Raises:
            OSError: a listener cannot be bound.
        """
        listening: list[socket.socket] = []
        try:
            self._bind(listening)
            async with trio.open_nursery() as nursery:
                acceptors = await self._start(nursery, listening)
                task_status.started(self.endpoints)
                await self._stop_requested.wait()
                acceptors.cancel(reason="the server is stopping")
                await self._drain()
                nursery.cancel_scope.cancel(reason="the server is stopping")
        finally:
            for sock in listening:
                sock.close()
            self._stopped.set()

    async def stop(self) -> None:
        """Stop gracefully: owed answers leave, then every channel is closed.

        If this wait is cancelled the server goes on stopping; cancel :meth:`run` to end it at
        once.
        """
        self._stop_requested.set()
        await self._stopped.wait()

    def statistics(self) -> ServerStatistics:
        processors = self._processors
        closed: Counter[CloseReason] = Counter()
        for processor in processors:
            closed.update(processor.closed)
        return ServerStatistics(
            connections=sum(p.connection_count for p in processors),
            connections_created=sum(p.connections_created for p in processors),
            requests=sum(p.requests_received for p in processors),
            responses=sum(p.responses_sent for p in processors),
            bytes_received=sum(p.bytes_received for p in processors),
            bytes_sent=sum(p.bytes_sent for p in processors),
            request_queue_size=len(self.request_channel),
            response_queue_size=sum(p.response_queue_size for p in processors),
            request_queue_full=sum(p.request_queue_full for p in processors),
            closed=dict(closed),
        )

    def _bind(self, listening: list[socket.socket]) -> None:
        """Bind every listener; those before one that fails are in ``listening`` all the same."""
        for index, endpoint in enumerate(self.endpoints):
            sock = bind(
                endpoint,
                backlog=self.config.socket_listen_backlog_size,
                receive_buffer_bytes=self.config.socket_receive_buffer_bytes,
            )
            listening.append(sock)
            self.endpoints[index] = endpoint.with_port(sock.getsockname()[1])

    async def _start(
        self, nursery: trio.Nursery, listening: list[socket.socket]
    ) -> trio.CancelScope:
        """Processors first, so that an accepted connection always has one (KAFKA-6893)."""
        await trio.lowlevel.checkpoint()
        config = self.config
        start_handlers(
            nursery,
            self.request_channel,
            self._handler,
            count=config.num_io_threads,
            name=f"request-handler-{config.node_id}",
        )
        acceptors = []
        for endpoint, sock in zip(self.endpoints, listening, strict=True):
            processors = [
                await self._start_processor(nursery, endpoint)
                for _ in range(config.num_network_threads)
            ]
            acceptors.append(
                Acceptor(endpoint, sock, processors, config.socket_send_buffer_bytes, self._log)
            )
        scope = trio.CancelScope()
        nursery.start_soon(_accept, scope, acceptors, name="socket-acceptors")
        return scope

    async def _start_processor(self, nursery: trio.Nursery, endpoint: Endpoint) -> Processor:
        processor = Processor(
            len(self._processors),
            endpoint,
            self.request_channel,
            self.config.socket_request_max_bytes,
            self._log,
            self.config.readiness,
        )
        name = (
            f"network-thread-{self.config.node_id}-{endpoint.listener_name}-"
            f"{endpoint.security_protocol}-{processor.id}"
        )
        await nursery.start(processor.run, name=name)
        self._processors.append(processor)
        return processor

    async def _drain(self) -> None:
        """Wait until every request that was received has had its answer written."""
        async with trio.open_nursery() as nursery:
            for processor in self._processors:
                nursery.start_soon(processor.drain)


async def _accept(scope: trio.CancelScope, acceptors: list[Acceptor]) -> None:
    """Run the acceptors until ``scope`` is cancelled; processors and handlers go on without."""
    with scope:
        async with trio.open_nursery() as nursery:
            for acceptor in acceptors:
                nursery.start_soon(acceptor.run, name=f"socket-acceptor-{acceptor.endpoint}")


class _PrefixedLog(logging.LoggerAdapter[logging.Logger]):
    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        assert self.extra is not None
        return f"{self.extra['prefix']} {msg}", kwargs
