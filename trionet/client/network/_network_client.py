"""The client for programs that send requests themselves, without a producer or consumer.

(Kafka: NetworkClient.) A :class:`.KafkaClient` does all the work. Its methods are repeated in this
module because that class is compiled, and compiled async functions are not coroutine functions:
they have neither a signature nor a docstring, and Python does not warn about a forgotten await.
"""

from __future__ import annotations

import math
from typing import Any, final

import trio

from ...errors import AuthenticationError
from ...protocol._wire import Message
from .._client_metrics import ClientMetrics, ClientStatistics
from .._not_copied import NotCopied
from ._api_versions import NodeApiVersions
from ._cluster import Node
from ._kafka_client import KafkaClient
from ._metadata import Metadata
from ._reachability import Reachability
from ._responses import Callback, ClientResponse
from ._telemetry import Telemetry


@final
class NetworkClient(NotCopied):
    """Connections to the nodes of a cluster; opened by :func:`.open_network_client`.

    One task polls; any number of other tasks send requests, or await :meth:`request`.

    The class has more than 25 methods, as Kafka's NetworkClient has: programs that use it in place
    of a producer or consumer need the same queries.

    Attributes:
        metadata: the client's view of the cluster.
        metrics: the client's metrics.
        reachability: tracks which nodes have been reached, and why others cannot be reached.
        telemetry: pushes the metrics to brokers that request them; None if that is disabled.
    """

    metadata: Metadata
    metrics: ClientMetrics
    reachability: Reachability
    telemetry: Telemetry | None
    _client: KafkaClient

    def __init__(self) -> None:
        raise TypeError("use trionet.open_network_client() to open a client")

    @classmethod
    def _create(cls, client: KafkaClient) -> NetworkClient:
        self = cls.__new__(cls)
        self._client = client
        self.metadata = client.metadata
        self.metrics = client.metrics
        self.reachability = client.reachability
        self.telemetry = client.telemetry
        return self

    # Connections.

    def ready(self, node: Node) -> bool:
        """Return whether a request may be sent to a node now; if not connected, start connecting.

        Args:
            node: a node of the cluster, or a bootstrap server.

        Raises:
            trio.ClosedResourceError: the client is closed.
        """
        return self._client.ready(node)

    def is_ready(self, node: Node) -> bool:
        """Whether a request may be sent to a node now.

        The result is False while a metadata update is due. The metadata request goes first, since
        otherwise a busy client would never send it.
        """
        return self._client.is_ready(node)

    def can_send(self, node_id: int, now: float) -> bool:
        """Whether a node is connected, not throttled, and can take another request.

        It cannot while an earlier request is still being written, or once
        ``max.in.flight.requests.per.connection`` is reached.

        Args:
            node_id: the id of the node; negative for a bootstrap server.
            now: the current time on trio's clock, in seconds.
        """
        return self._client.can_send(node_id, now)

    def begin_connect(self, node: Node, now: float) -> bool:
        """Start connecting if the backoff allows it, and return whether an attempt was started.

        Args:
            node: a node of the cluster, or a bootstrap server.
            now: the current time on trio's clock, in seconds.
        """
        return self._client.begin_connect(node, now)

    def connection_failed(self, node: Node) -> bool:
        """Whether the last connection to a node failed or was lost."""
        return self._client.connection(node).is_disconnected

    def connection_delay(self, node: Node) -> float:
        """Return the seconds until the connection to a node must be checked again.

        During the backoff, this is the remaining backoff; during a connection attempt, the time
        until the setup timeout. It is infinite once the connection is established.
        """
        return self._client.connection(node).connection_delay(trio.current_time())

    def poll_delay(self, node: Node) -> float:
        """Return the seconds until a request may become possible by the passage of time alone."""
        return self._client.connection(node).poll_delay(trio.current_time())

    def authentication_error(self, node: Node) -> AuthenticationError | None:
        """Return the error of the last connection if it failed authentication; None otherwise."""
        return self._client.connection(node).authentication_error

    def connection_problem(self) -> str:
        """Return why the cluster or a broker cannot be reached; an empty string if unknown."""
        return self._client.connection_problem()

    def connection_refusal(self) -> str:
        """Return why no broker accepts this client; empty if one may still respond.

        Nothing listens at any bootstrap server or at any address that the brokers advertise, the
        names do not exist, or the credentials are rejected. Attempts continue, since a broker may
        be starting; a program that need not wait for one can stop.
        """
        return self._client.connection_refusal()

    def versions(self, node: Node) -> NodeApiVersions | None:
        """Return the API versions of a node; None while it is not connected."""
        return self._client.versions(node)

    def in_flight_count(self, node: Node | None = None) -> int:
        """Return the number of requests in flight, to one node or to all nodes."""
        return self._client.in_flight_count(node)

    def statistics(self) -> ClientStatistics:
        """Return the current values of the client's metrics, keyed by Kafka's metric names."""
        return self.metrics.statistics(trio.current_time())

    def disconnect(self, node: Node) -> None:
        """Close the connection to a node; the next poll returns the errors of its requests."""
        self._client.disconnect(node)

    def close(self, node: Node) -> None:
        """Forget a node and its requests in flight (KAFKA-2519).

        The callbacks of these requests do not run, and no poll returns the outcomes; an awaited
        :meth:`request` raises :class:`.DisconnectedError`.
        """
        self._client.close(node)

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]:
        """Return the node most likely to respond first, and whether any connection is READY.

        In order of preference: the ready node with the fewest requests in flight, a node to which
        the client is connecting, the one tried least recently. The node is None if no node can be
        used now; throttled nodes are skipped (KAFKA-8275, KAFKA-8376).
        """
        return self._client.least_loaded_node(now)

    def next_usable_delay(self, now: float) -> float:
        """Return the seconds until a node may become usable by the passage of time alone."""
        return self._client.next_usable_delay(now)

    # Requests.

    def send(
        self,
        node: Node,
        body: Message,
        callback: Callback | None = None,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        timeout_seconds: float | None = None,
    ) -> int:
        """Send a request; a later poll returns its outcome.

        Args:
            node: a node for which :meth:`ready` returned True.
            body: the request.
            callback: called with the outcome at the end of that poll; exceptions it raises are
                logged.
            version_min: the oldest version that can carry the body.
            version_max: the newest version that the caller supports; None for no limit.
            timeout_seconds: the response timeout, in place of ``request.timeout.ms``.

        Returns:
            The correlation id. If the client and node have no version in common, the outcome is an
            error. A Produce request with ``acks=0``, which has no response, completes when it is
            sent.

        Raises:
            LocalProtocolError: the node is not ready, or the body cannot be encoded.
            ValueError: the body is not a request.
            trio.ClosedResourceError: the client is closed.
        """
        return self._client.send(
            node,
            body,
            callback,
            version_min=version_min,
            version_max=version_max,
            timeout_seconds=timeout_seconds,
        )

    async def request(
        self,
        node: Node,
        body: Message,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Send a request as soon as the node can take it, and wait for the response.

        Another task must poll. ``request.timeout.ms`` limits the wait for the response; the
        caller's cancel scopes limit the wait as a whole.

        Args:
            node: any node; the client connects to it if necessary.
            body: the request.
            version_min: the oldest version that can carry the body.
            version_max: the newest version that the caller supports; None for no limit.
            timeout_seconds: the response timeout, in place of ``request.timeout.ms``.

        Returns:
            The response.

        Raises:
            DisconnectedError: the connection could not be established, or was lost before the
                response arrived.
            RequestTimedOutError: there was no response in time.
            AuthenticationError: the node rejected the client's credentials.
            UnsupportedVersionError: the client and node have no version of the API in common.
            WireFormatError, ResponseTooLargeError: the response cannot be decoded, or is too large.
            trio.ClosedResourceError: the client is closed.

        Cancellation: a request that has not been sent is never sent; otherwise the broker may still
        carry it out, and its response is discarded.
        """
        return await self._client.request(
            node,
            body,
            version_min=version_min,
            version_max=version_max,
            timeout_seconds=timeout_seconds,
        )

    # Waits.

    async def until_ready(self, node: Node) -> None:
        """Wait until a request may be sent to a node, connecting to it if necessary.

        If the connection was lost earlier, this waits out the reconnect backoff. If a connection
        attempt fails during the wait, this raises the error of that attempt.

        Args:
            node: a node of the cluster, or a bootstrap server.

        Raises:
            DisconnectedError: the connection could not be established.
            AuthenticationError: the node rejected the client's credentials.
            trio.ClosedResourceError: the client is closed.

        Cancellation: a connection attempt that has started continues.
        """
        await self._client.until_ready(node)

    async def until_updated(self, updates: int = 0) -> None:
        """Wait until there have been more than ``updates`` successful metadata updates.

        Failures before this call are ignored, since the update is retried.

        Args:
            updates: the number returned by :meth:`.Metadata.request_update`.

        Raises:
            AuthenticationError, UnsupportedVersionError, ResponseTooLargeError: an update failed
                in a way that a retry cannot fix.
            LocalProtocolError: a :class:`.ManualMetadataUpdater` sets the nodes, so no update can
                happen.
            trio.ClosedResourceError: the client is closed.

        Cancellation: the update continues.
        """
        await self._client.until_updated(updates)

    # Polling.

    def wakeup(self) -> None:
        """Make the current poll, or the next one, return without waiting."""
        self._client.wakeup()

    async def until_polled(self) -> None:
        """Wait until the end of the current or next poll, which may have changed any state.

        Safe to cancel at any point.
        """
        await self._client.until_polled()

    async def run(self) -> None:
        """Poll until cancelled; only the callbacks receive the outcomes.

        Raises:
            trio.BusyResourceError: another task is polling.
            trio.ClosedResourceError: the client is closed.
        """
        await self._client.run()

    async def poll(self, timeout_seconds: float = math.inf) -> list[ClientResponse]:
        """Handle all events that are ready, or wait until there are any.

        Args:
            timeout_seconds: the maximum time to wait.

        Returns:
            The outcomes of requests, in order, after their callbacks have run. The list is empty if
            the poll timed out, or another event ended it, such as a new connection.

        Raises:
            ValueError: ``timeout_seconds`` is negative.
            trio.BusyResourceError: another task is polling.
            trio.ClosedResourceError: the client is closed.

        Cancellation: no outcome is lost; the next poll returns it.
        """
        return await self._client.poll(timeout_seconds)
