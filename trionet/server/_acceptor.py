"""The acceptor of a listener, which assigns accepted connections to processors.

(Kafka: SocketServer.Acceptor, with addProcessors and removeProcessors.) Every connection is checked
against the quotas before it is assigned to a processor. The connection is admitted, delayed (the
whole listener then waits until it can be admitted), or rejected. A rejected connection is closed
immediately, or after a delay if its address connects too often (KIP-612).

When accept() fails for lack of file descriptors or memory, the loop pauses. An error caused by a
peer affects only that connection. Any other error is a bug; it is counted and logged, and the loop
continues.
"""

from __future__ import annotations

import errno
import logging
import math
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing

import attrs
import trio

from ..net._idle_expiry import DelayedCloses
from ..net._network import Network
from ..net.wire._connecting import Address, ListeningSocket, Socket, set_options
from ..net.wire._endpoint import Endpoint
from ._connection import Accepted
from ._processor import Processor
from ._recorder import SECONDS_BETWEEN_LINES
from ._server_config import ServerConfig
from ._shared import Shared
from .quotas._connection_quotas import ConnectionGuard, Delayed, Rejected

# The maximum number of connections accepted before other tasks run. It is low because every
# listener may accept that many in one pass of the loop, setting up each takes 60 µs, and a request
# needs several passes.
ACCEPTS_PER_WAKEUP_MAX = 4
# For how long accepting pauses when the process or the system is out of descriptors or memory.
RESOURCE_PAUSE_SECONDS = 0.1
# How long a surplus processor may take to send its pending responses.
GRACE_SECONDS = 1.0

RunProcessor = Callable[..., Awaitable[None]]

OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


@attrs.define(eq=False, slots=False)
class Acceptor:
    """The accept loop and the processors of one listener, which run in the server's nursery.

    Args:
        endpoint: the listener, with its bound port.
        listening: the listening socket; closed when the loop ends.
        shared: the connection quotas, the log and the fault counter of the server.
        config: the server's settings, such as the sizes of the sockets' buffers.
        slot_freed: unparked when a connection that is waiting for a quota may be admitted.
        network: the network of the listening socket.
        run_processor: creates the processor with a given id, reports it as started, and runs it.
        processor_ids: yields the ids of new processors.
        nursery: returns the nursery for the tasks; raises LocalProtocolError if the server is
            stopping.

    Attributes:
        processors: the processors, which are assigned connections in turn; may change at any time.
    """

    endpoint: Endpoint
    _listening: ListeningSocket
    _shared: Shared
    _config: ServerConfig
    _slot_freed: trio.lowlevel.ParkingLot
    _network: Network
    _run_processor: RunProcessor
    _processor_ids: Iterator[int]
    _nursery: Callable[[], trio.Nursery]
    processors: list[Processor] = attrs.field(factory=list, init=False)
    _next: int = attrs.field(default=0, init=False)
    _logged_at: float = attrs.field(default=-math.inf, init=False)
    _throttled: DelayedCloses[Socket] = attrs.field(factory=DelayedCloses, init=False)
    _throttled_added: trio.Event = attrs.field(factory=trio.Event, init=False)
    _accepting: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _ended: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._shared.log

    def start_accepting(self) -> None:
        """Start accepting connections; requires at least one processor (KAFKA-6893).

        Raises:
            LocalProtocolError: the server is stopping.
        """
        endpoint = self.endpoint
        name = (
            f"data-plane-kafka-socket-acceptor-{endpoint.listener_name}-"
            f"{endpoint.security_protocol}-{endpoint.port}"
        )
        self._nursery().start_soon(self.run, name=name)

    def stop_accepting(self) -> None:
        """Close the listening socket; open connections are kept."""
        self._accepting.cancel(reason="the listener is stopping")

    async def stop(self) -> None:
        """Stop accepting and close all connections, even if this call is cancelled."""
        self.stop_accepting()
        # Takes one scheduler pass: a cancelled acceptor waits for nothing.
        with trio.CancelScope(shield=True):
            await self._ended.wait()
        self.end_processors()

    async def run(self) -> None:
        """Accept until stopped, then close the listening socket and all throttled connections."""
        with self._accepting, closing(self._listening):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._close_throttled, name="throttled connections")
                    await self._accept_all()
            finally:
                for sock in self._throttled.pop_all():
                    sock.close()
                self._ended.set()

    async def _accept_all(self) -> None:
        while True:
            try:
                await self._network.wait_acceptable(self._listening)
                for _ in range(ACCEPTS_PER_WAKEUP_MAX):
                    accepted = await self._accept()
                    if accepted is None:
                        break
                    await self._serve(*accepted)
            except Exception as error:  # boundary: nothing but cancellation ends the loop
                self._shared.faults.note(f"accepting on {self.endpoint}", error)
                await trio.sleep(RESOURCE_PAUSE_SECONDS)

    async def _serve(self, sock: Socket, remote: Address) -> None:
        """Assign a connection to a processor, if the quotas admit it."""
        guard: ConnectionGuard | None = None
        try:
            guard = await self._admit(sock, str(remote[0]))
            if guard is not None:
                await self._hand_over(Accepted(sock, remote, guard))
        except BaseException:  # cancelled, or a bug
            if guard is not None:
                guard.release()
            sock.close()
            raise

    async def _accept(self) -> tuple[Socket, Address] | None:
        """Return the next connection and its peer's address; None if no connection is waiting."""
        try:
            sock, address = self._listening.accept()
        except OSError as error:
            if error.errno in (errno.EBADF, errno.EINVAL, errno.ENOTSOCK):
                raise
            if error.errno in OUT_OF_RESOURCES:
                now = trio.current_time()
                if now >= self._logged_at + SECONDS_BETWEEN_LINES:
                    self._logged_at = now
                    self._log.error("cannot accept on %s: %s; retrying", self.endpoint, error)
                await trio.sleep(RESOURCE_PAUSE_SECONDS)
            return None  # no connection is waiting, or its peer has disconnected
        return self._configure(sock, address)

    def _configure(self, sock: Socket, remote: Address) -> tuple[Socket, Address] | None:
        try:
            set_options(sock, send_buffer_bytes=self._config.socket_send_buffer_bytes)
        except OSError as error:
            self._log.info("a connection from %s failed while being accepted: %s", remote[0], error)
            sock.close()
            return None
        return sock, remote

    # Quotas.

    async def _admit(self, sock: Socket, host: str) -> ConnectionGuard | None:
        """Wait until the quotas admit a connection. Returns its guard; None if it is rejected."""
        quotas = self._shared.quotas
        admission = quotas.try_admit(self.endpoint.listener_name, host, trio.current_time())
        while isinstance(admission, Delayed):
            # The whole listener waits, so that further connections queue in its backlog.
            with trio.move_on_after(admission.seconds):
                await self._slot_freed.park()
            admission = quotas.retry(admission, trio.current_time())
        if isinstance(admission, Rejected):
            self._reject(sock, admission)
            return None
        return admission

    def _reject(self, sock: Socket, rejected: Rejected) -> None:
        self._log.info(
            "rejected a connection from %s: %s (limit: %d)",
            rejected.address,
            rejected.reason.value,
            rejected.limit,
        )
        if rejected.close_after > 0:
            ends_at = trio.current_time() + rejected.close_after
            displaced = self._throttled.add(sock, ends_at)
            if displaced is not None:
                displaced.close()
            self._throttled_added.set()
            return
        sock.close()
        if rejected.guard is not None:
            rejected.guard.release()

    async def _close_throttled(self) -> None:
        while True:
            self._throttled_added = trio.Event()
            with trio.move_on_at(self._throttled.next_check_at):
                await self._throttled_added.wait()
            for sock in self._throttled.pop_due(trio.current_time()):
                try:
                    sock.close()
                except OSError as error:
                    self._shared.faults.note(f"closing a connection to {self.endpoint}", error)

    # Processors.

    async def resize(self, count: int) -> None:
        """Change the number of processors to ``count``.

        Surplus processors stop reading, and close their connections when all pending responses have
        been sent, or after :data:`GRACE_SECONDS`. New processors are assigned connections as soon
        as they are ready. After a cancellation, there may be fewer new processors than requested.

        Raises:
            LocalProtocolError: the server is stopping; nothing was changed.
        """
        await trio.lowlevel.checkpoint()
        nursery = self._nursery()
        for processor in self.processors[count:]:
            nursery.start_soon(self._retire, processor)
        del self.processors[count:]
        while len(self.processors) < count:
            self.processors.append(await self._start_processor())

    def end_processors(self) -> None:
        """End all processors; call this only after the acceptor has ended."""
        for processor in self.processors:
            processor.end()
        self.processors.clear()

    async def _retire(self, processor: Processor) -> None:
        """End a processor after its pending responses have been sent.

        These may include the response to the request that caused the resize.
        """
        with trio.move_on_after(GRACE_SECONDS):
            await processor.drain()
        processor.end()

    async def _start_processor(self) -> Processor:
        id = next(self._processor_ids)
        name = (
            f"data-plane-kafka-network-thread-{self._config.node_id}-{self.endpoint.listener_name}-"
            f"{self.endpoint.security_protocol}-{id}"
        )
        processor: Processor = await self._nursery().start(self._run_processor, id, name=name)
        return processor

    async def _hand_over(self, accepted: Accepted) -> None:
        """Assign a connection to the next processor in turn that has space.

        If all processors are full, wait for space at the last one tried.
        """
        processors = self.processors
        count = len(processors)
        for turn in range(count):
            index = (self._next + turn) % count
            if processors[index].new_connections.offer(accepted):
                self._next = (index + 1) % count
                self._log_accepted(accepted, processors[index])
                return
        # Wait for the last one tried; the next connection starts with the same first one again.
        processor = processors[(self._next - 1) % count]
        self._next %= count
        began = trio.current_time()
        await processor.new_connections.put(accepted)
        quota = self._shared.quotas.listener(self.endpoint.listener_name)
        quota.blocked_seconds += trio.current_time() - began
        self._log_accepted(accepted, processor)

    def _log_accepted(self, accepted: Accepted, processor: Processor) -> None:
        if not self._log.isEnabledFor(logging.DEBUG):
            return
        sock, _, guard = accepted
        if sock.fileno() == -1:
            return  # the processor has ended, which closed the connection
        self._log.debug(
            "accepted a connection from %s on %s for processor %d, sendBufferSize "
            "[actual|requested]: [%d|%d] recvBufferSize [actual|requested]: [%d|%d]",
            guard.address,
            self.endpoint,
            processor.id,
            sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
            self._config.socket_send_buffer_bytes,
            sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            self._config.socket_receive_buffer_bytes,
        )
