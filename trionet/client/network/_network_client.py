"""The client for programs that send requests themselves, without a producer or consumer.

(Kafka: NetworkClient.) All work is done by a :class:`.KafkaClient`. Its methods are repeated here
because it is compiled, and compiled async functions are not coroutine functions: they have neither
signature nor docstring, and a forgotten await does not warn.
"""

from __future__ import annotations

import math
from typing import Any, final

import trio

from ...errors import AuthenticationError, TrionetError
from ...protocol._wire import Message
from .._node import Node
from ..connections._reachability import Reachability
from ..metadata._metadata import Metadata
from ..metrics._client_metrics import ClientMetrics
from ..metrics._statistics import ClientStatistics
from ..metrics._telemetry import Telemetry
from ..requests._api_versions import NodeApiVersions
from ..requests._response import ClientResponse
from ._kafka_client import KafkaClient
from ._outcomes import Callback


@final
class NetworkClient:
    """Connections to the nodes of a cluster; opened by :func:`.open_network_client`.

    One task polls; any number of other tasks send requests, or await :meth:`request`.

    More than 25 methods, as in Kafka's NetworkClient: programs that use this class in place of a
    producer or consumer need every query that those make, and each has its contract here.

    Attributes:
        metadata: the client's view of the cluster.
        metrics: the client's metrics.
        reachability: tracks which nodes have been reached, and why others cannot be.
        telemetry: pushes the metrics to brokers that ask for them; None if that is disabled.
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
        """Whether a request may be sent to a node now; starts connecting if there is no connection.

        Args:
            node: a node of the cluster, or a bootstrap server.

        Raises:
            trio.ClosedResourceError: the client is closed.
        """
        return self._client.ready(node)

    def is_ready(self, node: Node) -> bool:
        """Whether a request may be sent to a node now.

        False while a metadata update is due: the update goes first, since otherwise a busy client
        would never send it.
        """
        return self._client.is_ready(node)

    def can_send(self, node_id: int, now: float) -> bool:
        """Whether a node is connected, not throttled, and below its limit of requests in flight.

        Args:
            node_id: the id of the node; negative for a bootstrap server.
            now: the current time of trio's clock, in seconds.
        """
        return self._client.can_send(node_id, now)

    def begin_connect(self, node: Node, now: float) -> bool:
        """Start connecting, if the backoff allows it. Returns whether it did.

        Args:
            node: a node of the cluster, or a bootstrap server.
            now: the current time of trio's clock, in seconds.
        """
        return self._client.begin_connect(node, now)

    def connection_failed(self, node: Node) -> bool:
        """Whether the last connection to a node failed or was lost."""
        return self._client.connection(node).is_disconnected

    def connection_delay(self, node: Node) -> float:
        """Return the seconds until the connection to a node has to be checked again.

        While backing off, the rest of the backoff; while connecting, the time until the setup
        timeout; infinite once established.
        """
        return self._client.connection(node).connection_delay(trio.current_time())

    def poll_delay(self, node: Node) -> float:
        """Return the seconds until a request to a node may become possible by mere waiting."""
        return self._client.connection(node).poll_delay(trio.current_time())

    def authentication_error(self, node: Node) -> AuthenticationError | None:
        """Return why a node last rejected this client's credentials; None if it did not."""
        return self._client.connection(node).authentication_error

    def connection_error(self, node: Node) -> TrionetError | None:
        """Return why the last connection to a node failed or was lost; None if it is up."""
        return self._client.connection(node).error

    def connection_problem(self) -> str:
        """Return why the cluster or a broker cannot be reached; empty if that is not known."""
        return self._client.connection_problem()

    def versions(self, node: Node) -> NodeApiVersions | None:
        """Return the API versions of a node; None while it is not connected."""
        return self._client.versions(node)

    def in_flight_count(self, node: Node | None = None) -> int:
        """Return the number of requests without a response, to one node or to all."""
        return self._client.in_flight_count(node)

    def statistics(self) -> ClientStatistics:
        """Return the client's current metrics by Kafka's names."""
        return self.metrics.statistics(trio.current_time())

    def disconnect(self, node: Node) -> None:
        """Close the connection to a node; the next poll returns the errors of its requests."""
        self._client.disconnect(node)

    def close(self, node: Node) -> None:
        """Forget a node and its requests in flight (KAFKA-2519).

        Their callbacks do not run, and no poll returns them; an awaited :meth:`request` raises.
        """
        self._client.close(node)

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]:
        """Return the node that is likely to respond first, and whether any connection is ready.

        The node is None if no node can be used now; throttled nodes are skipped (KAFKA-8275,
        KAFKA-8376). See :func:`._least_loaded.least_loaded` for the order.
        """
        return self._client.least_loaded_node(now)

    def next_usable_delay(self, now: float) -> float:
        """Return the seconds until a node of the cluster may become usable by mere waiting."""
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
            callback: called with the outcome at the end of that poll; its exceptions are logged.
            version_min: the oldest version that can carry the body.
            version_max: the newest version that the caller supports; None for no limit.
            timeout_seconds: the timeout of the response, in place of ``request.timeout.ms``.

        Returns:
            The correlation id. If the node supports no common version, the outcome is an error. A
            Produce request with ``acks=0``, which has no response, completes when it is sent.

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
            timeout_seconds: the timeout of the response, in place of ``request.timeout.ms``.

        Returns:
            The response.

        Raises:
            DisconnectedError: the connection could not be established, or was lost before the
                response.
            RequestTimedOutError: there was no response in time.
            AuthenticationError: the node rejected the client's credentials.
            UnsupportedVersionError: the node supports no common version of the API.
            WireFormatError, ResponseTooLargeError: the response does not decode, or is too large.
            trio.ClosedResourceError: the client is closed.

        Cancellation: a request that was not sent yet has no effect; otherwise the broker may carry
        it out, and the response is dropped.
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

        If the connection was lost before, this waits for the reconnect backoff; a connection
        attempt that fails during the wait raises.

        Args:
            node: a node of the cluster, or a bootstrap server.

        Raises:
            DisconnectedError: the connection could not be established.
            AuthenticationError: the node rejected the client's credentials.
            trio.ClosedResourceError: the client is closed.

        Cancellation: a connection attempt that was started continues.
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
            LocalProtocolError: the nodes are set by a :class:`.ManualMetadataUpdater`, so that
                there will be no update.
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

        Cancellation: has no effect.
        """
        await self._client.until_polled()

    async def run(self) -> None:
        """Poll until cancelled; outcomes go to the callbacks only.

        Raises:
            trio.BusyResourceError: another task is polling.
            trio.ClosedResourceError: the client is closed.
        """
        await self._client.run()

    async def poll(self, timeout_seconds: float = math.inf) -> list[ClientResponse]:
        """Make all the progress that is possible now, or wait until there is some.

        Args:
            timeout_seconds: the maximum time to wait.

        Returns:
            The outcomes of requests, in order, after their callbacks have run. Empty if something
            else happened, such as a connection that was established.

        Raises:
            ValueError: ``timeout_seconds`` is negative.
            trio.BusyResourceError: another task is polling.
            trio.ClosedResourceError: the client is closed.

        Cancellation: no outcome is lost; the next poll returns it.
        """
        return await self._client.poll(timeout_seconds)
