"""One listener of a running server: its socket, its acceptor and its processors.

(Kafka: SocketServer's dynamic listeners, and Acceptor.addProcessors and removeProcessors.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import attrs
import trio

from ..net.endpoint import Endpoint
from .acceptor import Acceptor
from .processor import Processor

# How long the answers that a processor owes have to leave when there are to be fewer of them.
GRACE_SECONDS = 1.0

RunProcessor = Callable[..., Awaitable[None]]


@attrs.define(eq=False)
class Listener:
    """What runs for one listener, inside the server's nursery.

    Args:
        endpoint: with its bound port.
        acceptor: its accept loop, which knows the processors too.
        run_processor: makes a processor of a number, reports it, and runs it until it ends.
        processor_ids: the numbers of new processors.
        node_id: for the names of tasks.
        nursery: where its tasks run; raises a LocalProtocolError when the server ends.
    """

    endpoint: Endpoint
    _acceptor: Acceptor
    _run_processor: RunProcessor
    _processor_ids: Iterator[int]
    _node_id: int
    _nursery: Callable[[], trio.Nursery]
    _accepting: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _ended: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def processors(self) -> list[Processor]:
        """Those that serve its connections."""
        return self._acceptor.processors

    async def resize(self, count: int) -> None:
        """Have ``count`` processors.

        Fewer: the last ones read nothing more, and end with their connections when their answers
        have left, or after :data:`GRACE_SECONDS`. Connections are handed to new ones when they are
        ready. Cancelled, it has fewer new ones than wanted.

        Raises:
            LocalProtocolError: the server ends, so that there are no new ones.
        """
        await trio.lowlevel.checkpoint()
        nursery = self._nursery()
        for processor in self.processors[count:]:
            nursery.start_soon(self._retire, processor)
        del self.processors[count:]
        while len(self.processors) < count:
            self.processors.append(await self._start_processor())

    def end_processors(self) -> None:
        """End all of them; only after the acceptor."""
        for processor in self.processors:
            processor.end()
        self.processors.clear()

    async def _retire(self, processor: Processor) -> None:
        """End a processor, so that who asked for fewer of them still hears that it was done."""
        with trio.move_on_after(GRACE_SECONDS):
            await processor.drain()
        processor.end()

    async def _start_processor(self) -> Processor:
        id = next(self._processor_ids)
        name = (
            f"data-plane-kafka-network-thread-{self._node_id}-{self.endpoint.listener_name}-"
            f"{self.endpoint.security_protocol}-{id}"
        )
        processor: Processor = await self._nursery().start(self._run_processor, id, name=name)
        return processor

    def start_accepting(self) -> None:
        """Accept connections; there must be a processor by now (KAFKA-6893).

        Raises:
            LocalProtocolError: the server ends.
        """
        endpoint = self.endpoint
        name = (
            f"data-plane-kafka-socket-acceptor-{endpoint.listener_name}-"
            f"{endpoint.security_protocol}-{endpoint.port}"
        )
        self._nursery().start_soon(self._accept, name=name)

    async def _accept(self) -> None:
        try:
            with self._accepting:
                await self._acceptor.run()
        finally:
            self._ended.set()

    def stop_accepting(self) -> None:
        """Close the listening socket; connections go on."""
        self._accepting.cancel(reason="the listener stops")

    async def stop(self) -> None:
        """Accept nothing more and close its connections; cancelled, it does so all the same."""
        self.stop_accepting()
        # For one pass of the scheduler: an acceptor that is cancelled waits for nothing.
        with trio.CancelScope(shield=True):
            await self._ended.wait()
        self.end_processors()
