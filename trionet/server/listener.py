"""One listener of a running server: its socket, its acceptor and its processors.

(Kafka: SocketServer's dynamic listeners, and Acceptor.addProcessors and removeProcessors.)
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from ..net.endpoint import Endpoint
from .acceptor import Acceptor
from .processor import Processor

NewProcessor = Callable[[], Processor]


class Listener:
    """What runs for one listener, inside the server's nursery.

    Args:
        endpoint: with its bound port.
        acceptor: its accept loop, which knows the processors too.
        new_processor: makes another processor of it.
        node_id: for the names of tasks.
        nursery: where its tasks run.

    Attributes:
        processors: those that serve its connections.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        acceptor: Acceptor,
        new_processor: NewProcessor,
        node_id: int,
        nursery: trio.Nursery,
    ) -> None:
        self.endpoint = endpoint
        self.processors = acceptor.processors
        self._acceptor = acceptor
        self._new_processor = new_processor
        self._node_id = node_id
        self._nursery = nursery
        self._accepting = trio.CancelScope()
        self._scopes: dict[Processor, trio.CancelScope] = {}
        self._ended = trio.Event()

    async def resize(self, count: int) -> list[Processor]:
        """Have ``count`` processors.

        Fewer: the last ones end, and their connections with them; requests of those that are out
        are answered to nobody. Connections are handed to new ones when they are ready.

        Returns:
            Those that have ended.
        """
        removed = self.processors[count:]
        del self.processors[count:]
        for processor in removed:
            self._scopes.pop(processor).cancel(reason="fewer processors are wanted")
        while len(self.processors) < count:
            self.processors.append(await self._start_processor())
        await trio.lowlevel.checkpoint()
        return removed

    async def _start_processor(self) -> Processor:
        processor = self._new_processor()
        name = (
            f"network-thread-{self._node_id}-{self.endpoint.listener_name}-"
            f"{self.endpoint.security_protocol}-{processor.id}"
        )
        scope = self._scopes[processor] = trio.CancelScope()
        await self._nursery.start(_run, scope, processor, name=name)
        return processor

    def start_accepting(self) -> None:
        """Accept connections; there must be a processor by now (KAFKA-6893)."""
        endpoint = self.endpoint
        name = (
            f"socket-acceptor-{endpoint.listener_name}-{endpoint.security_protocol}-{endpoint.port}"
        )
        self._nursery.start_soon(self._accept, name=name)

    async def _accept(self) -> None:
        try:
            with self._accepting:
                await self._acceptor.run()
        finally:
            self._ended.set()

    def stop_accepting(self) -> None:
        """Close the listening socket; connections go on."""
        self._accepting.cancel(reason="the listener stops")

    async def drain(self) -> None:
        """Read nothing more, and wait until every request received has had its answer written."""
        async with trio.open_nursery() as nursery:
            for processor in self.processors:
                nursery.start_soon(processor.drain)

    async def stop(self) -> list[Processor]:
        """Accept nothing more and close its connections.

        Returns:
            The processors that have ended.
        """
        self.stop_accepting()
        await self._ended.wait()
        return await self.resize(0)


async def _run(
    scope: trio.CancelScope,
    processor: Processor,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with scope:
        await processor.run(task_status=task_status)
