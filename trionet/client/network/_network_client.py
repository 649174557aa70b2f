"""The client of those who send requests themselves, without a producer or consumer.

(Kafka: NetworkClient.) A :class:`.KafkaClient` does all of it. Its methods are here once more
because it is compiled, and compiled async functions are no coroutine functions: they show neither
signature nor docstring, and a forgotten await does not warn.
"""

from __future__ import annotations

import math
from typing import Any

from ...errors import AuthenticationError, TrionetError
from ...protocol._wire import Message
from .._node import Node
from ..metadata._metadata import Metadata
from ..metrics._statistics import ClientStatistics
from ..requests._api_versions import NodeApiVersions
from ..requests._response import ClientResponse
from ._exchange import Callback
from ._kafka_client import KafkaClient


class NetworkClient:
    """Connections to all nodes, requests and responses; made by :func:`.open_network_client`.

    One task polls; any number of others send, or await a :meth:`request`.

    Args:
        client: does the work.

    Attributes:
        metrics: what can be measured of it.
        reachability: which nodes were reached, and why others cannot be.
        telemetry: pushes that to brokers that ask for it; None if it does not.
    """

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self.metrics = client.metrics
        self.reachability = client.reachability
        self.telemetry = client.telemetry

    @property
    def metadata(self) -> Metadata:
        """What is known of the cluster."""
        return self._client.metadata

    # Connections.

    def ready(self, node: Node) -> bool:
        """Whether a request may be sent to a node now; if there is no connection, begin one.

        Raises:
            trio.ClosedResourceError: the client is closed.
        """
        return self._client.ready(node)

    def is_ready(self, node: Node) -> bool:
        """Whether a request may be sent to a node now.

        Not while metadata are due: they go first, or a busy client would never get them.
        """
        return self._client.is_ready(node)

    def can_send(self, node_id: int, now: float) -> bool:
        """Whether a node is connected, not throttled, and has room for one more request."""
        return self._client.can_send(node_id, now)

    def begin_connect(self, node: Node, now: float) -> bool:
        """Begin to connect, if that may be done now."""
        return self._client.begin_connect(node, now)

    def connection_failed(self, node: Node) -> bool:
        """Whether the last connection to a node was lost, or could not be made."""
        return self._client.connection_failed(node)

    def connection_delay(self, node: Node) -> float:
        """See :meth:`.ClusterConnectionStates.connection_delay`."""
        return self._client.connection_delay(node)

    def poll_delay(self, node: Node) -> float:
        """See :meth:`.ClusterConnectionStates.poll_delay`."""
        return self._client.poll_delay(node)

    def authentication_error(self, node: Node) -> AuthenticationError | None:
        """Why a node did not let us in the last time; None if it did."""
        return self._client.authentication_error(node)

    def connection_error(self, node: Node) -> TrionetError | None:
        """Why the last connection to a node was lost, or could not be made; None if it was made."""
        return self._client.connection_error(node)

    def connection_problem(self) -> str:
        """See :meth:`.Reachability.problem`."""
        return self._client.connection_problem()

    def versions(self, node: Node) -> NodeApiVersions | None:
        """What a node serves; None before it was asked."""
        return self._client.versions(node)

    def in_flight_count(self, node: Node | None = None) -> int:
        """How many requests were sent and have no response yet, to one node or to all."""
        return self._client.in_flight_count(node)

    def statistics(self) -> ClientStatistics:
        """What this client did and holds at the moment, by Kafka's names."""
        return self._client.statistics()

    def disconnect(self, node: Node) -> None:
        """End the connection to a node; the next poll tells of its requests, in their order."""
        self._client.disconnect(node)

    def close(self, node: Node) -> None:
        """Forget a node, and what is in flight to it (KAFKA-2519).

        No callback runs, and no poll returns it; an awaited :meth:`request` ends with an error.
        """
        self._client.close(node)

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]:
        """The node that will respond soonest, and whether any connection is ready.

        None if none can be asked now: throttled nodes are passed over (KAFKA-8275, KAFKA-8376). See
        :func:`._least_loaded.least_loaded`.
        """
        return self._client.least_loaded_node(now)

    def soonest(self, now: float) -> float:
        """Seconds until time alone may make one of the cluster's nodes usable."""
        return self._client.soonest(now)

    # Requests.

    def send(
        self,
        node: Node,
        body: Message,
        callback: Callback | None = None,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        seconds_max: float | None = None,
    ) -> int:
        """Send a request; a later poll hands out what became of it.

        Args:
            node: one that :meth:`ready` said yes to.
            body: the request.
            callback: called with the outcome at the end of that poll; its own errors are logged.
            version_min: the oldest version that can carry the body.
            version_max: the newest that the caller understands; None for all.
            seconds_max: how long the answer may take, in place of ``request.timeout.ms``.

        Returns:
            The correlation id. If the node has no version in common, the outcome is an error. A
            Produce with ``acks=0``, to which no answer comes, is complete when it has left.

        Raises:
            LocalProtocolError: the node is not ready, or the body cannot be encoded.
            ValueError: the body is no request.
            trio.ClosedResourceError: the client is closed.
        """
        return self._client.send(
            node,
            body,
            callback,
            version_min=version_min,
            version_max=version_max,
            seconds_max=seconds_max,
        )

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
        return await self._client.request(
            node, body, version_min=version_min, version_max=version_max, seconds_max=seconds_max
        )

    # Waits.

    async def until_ready(self, node: Node) -> None:
        """Wait until a request may be sent to a node; connect to it if that is needed.

        A connection that was lost before is tried again when its wait is over; one that fails
        meanwhile is an error.

        Raises:
            DisconnectedError: the connection could not be made.
            AuthenticationError: the node does not let us in.
            trio.ClosedResourceError: the client is closed.
        """
        await self._client.until_ready(node)

    async def until_updated(self, updates: int = 0) -> None:
        """Wait until the cluster was described more than ``updates`` times.

        An attempt that failed before this was called is no matter: there will be another.

        Args:
            updates: what :meth:`.Metadata.request_update` returned.

        Raises:
            AuthenticationError, UnsupportedVersionError, ResponseTooLargeError: no metadata.
            LocalProtocolError: the nodes are given by a :class:`.ManualMetadataUpdater`, so that
                none will ever come.
            trio.ClosedResourceError: the client is closed.
        """
        await self._client.until_updated(updates)

    # The turn.

    def wakeup(self) -> None:
        """Make the poll under way, or the next one, return without waiting."""
        self._client.wakeup()

    async def until_news(self) -> None:
        """Wait until a poll has ended, which may have changed anything.

        Cancellation: changes nothing.
        """
        await self._client.until_news()

    async def run(self) -> None:
        """Poll until cancelled; what becomes of requests is told to their callbacks alone.

        Raises:
            trio.BusyResourceError: another task polls.
            trio.ClosedResourceError: the client is closed.
        """
        await self._client.run()

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
        return await self._client.poll(seconds_max)
