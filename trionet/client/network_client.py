"""The client for users of the lowest level: requests to the nodes of a cluster, and the answers.

(Kafka: NetworkClient.) All of it is done by :class:`.KafkaClient`. What stands here are the async
functions, because compiled ones are no coroutine functions: they show neither signature nor
docstring, and their coroutines do not warn when they were never awaited.
"""

from __future__ import annotations

import math
from typing import Any

from ..protocol.wire import Message
from .kafka_client import KafkaClient
from .node import Node
from .response import ClientResponse


class NetworkClient(KafkaClient):
    """Connections to all nodes, requests and answers; made by :func:`.opening.open_network_client`.

    One task polls; any number of others send, or await a :meth:`request`.

    Attributes:
        metrics: what can be measured of it.
        reachability: which nodes were reached, and why others cannot be.
        telemetry: pushes that to brokers that ask for it; None if it does not.
    """

    async def request(
        self,
        node: Node,
        body: Message,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        seconds_max: float | None = None,
    ) -> Any:
        """Send a request as soon as the node can take it, and wait for the answer.

        Another task polls meanwhile. How long this waits is a matter of ``request.timeout.ms`` and
        of the caller's cancel scopes.

        Args:
            node: any; it is connected if it is not.
            body: the request.
            version_min: the oldest version that can carry the body.
            version_max: the newest that the caller understands; None for all.
            seconds_max: how long the answer may take, in place of ``request.timeout.ms``.

        Returns:
            The answer.

        Raises:
            DisconnectedError: the connection could not be made, or ended before the answer.
            RequestTimedOutError: the answer was late.
            AuthenticationError: the node does not let us in.
            UnsupportedVersionError: the node has no version in common with us.
            WireFormatError, ResponseTooLargeError: the answer does not decode, or is too large.
            trio.ClosedResourceError: the client is closed.

        Cancellation: before the request is sent nothing happened; after, it may be carried out, and
        its answer is dropped.
        """
        return await super().request(
            node,
            body,
            version_min=version_min,
            version_max=version_max,
            seconds_max=seconds_max,
        )

    async def until_ready(self, node: Node) -> None:
        """Wait until a request may be sent to a node; connect to it if that is needed.

        A connection that was lost before is tried again when its wait is over; one that fails
        meanwhile is an error.

        Raises:
            DisconnectedError: the connection could not be made.
            AuthenticationError: the node does not let us in.
            trio.ClosedResourceError: the client is closed.
        """
        await super().until_ready(node)

    async def until_updated(self, updates: int = 0) -> None:
        """Wait until the cluster was described more than ``updates`` times.

        An attempt that failed before this was called is no matter: there will be another.

        Args:
            updates: what :meth:`.Metadata.request_update` returned.

        Raises:
            AuthenticationError, UnsupportedVersionError, ResponseTooLargeError: no metadata.
            trio.ClosedResourceError: the client is closed.
        """
        await super().until_updated(updates)

    async def until_news(self) -> None:
        """Wait until a poll has ended, which may have changed anything.

        Cancellation: changes nothing.
        """
        await super().until_news()

    async def run(self) -> None:
        """Poll until cancelled; what becomes of requests is told to their callbacks alone.

        Raises:
            trio.BusyResourceError: another task polls.
            trio.ClosedResourceError: the client is closed.
        """
        await super().run()

    async def poll(self, seconds_max: float = math.inf) -> list[ClientResponse]:
        """One turn: make all the progress that is possible now, or wait until some is.

        Args:
            seconds_max: how long it waits at most.

        Returns:
            What became of requests, in the order in which it was known, after their callbacks ran.
            Empty when something else happened, such as a connection that was made.

        Raises:
            ValueError: ``seconds_max`` is negative.
            trio.BusyResourceError: another task polls.
            trio.ClosedResourceError: the client is closed.

        Cancellation loses nothing: what was not handed out is handed out by the next poll.
        """
        return await super().poll(seconds_max)
