"""Sends requests, and handles the results of polls.

This is the inner half of a turn of :class:`.KafkaClient` (Kafka: NetworkClient.handleCompletedSends
and similar methods). Nothing in this module waits.

The outcome of a user's request is added to the :class:`.Outcomes`, which are returned at the end of
the poll. Internal requests (metadata, versions) are completed immediately instead, since their
outcomes affect the rest of the poll.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from typing import Any, Final

from ..._util._logging import get_logger
from ...errors import (
    AuthenticationError,
    DisconnectedError,
    RequestTimedOutError,
    ResponseTooLargeError,
    TrionetError,
    WireFormatError,
)
from ...net._channel import Channel
from ...net._channels import PollResult
from ...net._selector import Selector
from ...net.wire._close_reason import CloseReason
from ...net.wire._framing import Frame
from ...net.wire._transmission import Send
from ...protocol import api_keys, error_codes
from ...protocol._codec import ApiVersionCodec
from ...protocol._wire import Message
from ...protocol.messages.metadata import MetadataResponse
from .._counters import ClientCounters
from .._network_settings import RequestSettings
from ..security._sasl_client_authenticator import RESERVED_IDS
from ._api_versions import ConnectionSetup
from ._cluster import EPOCHS_VERSION, Cluster, Node, forget_epochs
from ._connection_states import PATIENCE_SECONDS, ClusterConnectionStates
from ._connections import RESPONSE_LIMIT, Connections
from ._in_flight import (
    InFlightRequest,
    InFlightRequests,
    decode_response,
    encode_request,
    throttle_seconds,
)
from ._metadata_updater import MetadataUpdater
from ._reachability import Reachability, Stage, cause_of_end, no_response
from ._responses import Callback, ClientResponse, Outcomes, PendingResponse

logger = get_logger("trionet.client")

# Higher ids are reserved for SASL (Kafka: SaslClientAuthenticator.MIN_RESERVED_CORRELATION_ID).
CORRELATION_ID_MAX = RESERVED_IDS[0] - 1

_DESCRIPTIONS: Final = frozenset({api_keys.METADATA, api_keys.DESCRIBE_CLUSTER})


class Exchange:
    """The requests in flight on a client's connections, and their outcomes.

    Args:
        selector: the client's own selector.
        connections: the channels.
        states: the states of the connections.
        updater: receives the responses to its requests, and is notified of lost connections.
        settings: the request settings.
        counters: counts requests and responses.

    Attributes:
        in_flight: the requests in flight.
        outcomes: the outcomes not yet returned by a poll.
        setup: the setup of new connections, and the API versions of connected nodes.
        reachability: tracks which nodes have been reached, and why others cannot be reached.
    """

    def __init__(
        self,
        selector: Selector,
        connections: Connections,
        states: ClusterConnectionStates,
        updater: MetadataUpdater,
        settings: RequestSettings,
        counters: ClientCounters,
    ) -> None:
        self.in_flight = InFlightRequests(settings.in_flight_max)
        self._counters = counters
        self.outcomes = Outcomes()
        self.setup = ConnectionSetup(states, discovers_versions=settings.discover_versions)
        self.reachability = Reachability(are_advertised=updater.is_automatic)
        self._selector = selector
        self._connections = connections
        self._states = states
        self._updater = updater
        self._settings = settings
        self._last_correlation_id = -1

    # Requests.

    def next_correlation_id(self) -> int:
        last = self._last_correlation_id
        self._last_correlation_id = 0 if last >= CORRELATION_ID_MAX else last + 1
        return self._last_correlation_id

    def send(self, request: InFlightRequest) -> None:
        """Send a request to a node that is ready for it.

        Raises:
            LocalProtocolError: the body cannot be encoded.
        """
        channel = self._connections.channel(request.node_id)
        assert channel is not None
        outgoing = encode_request(request, self._settings.client_id)
        self.in_flight.add(request)
        self._counters.request_sent(
            request.node_id, outgoing.size if isinstance(outgoing, Send) else len(outgoing)
        )
        self._selector.look_at_clock()
        if self._selector.send(channel, outgoing):
            self._handle_sent(request.node_id, request.sent_at)
        elif channel.send is None:
            self._selector.wakeup()  # the send failed, so no event will end the current poll
        if not channel.is_open:
            self._selector.wakeup()  # the current poll must report the closed channel

    def send_own(
        self,
        node_id: int,
        codec: ApiVersionCodec,
        body: Message,
        now: float,
        callback: Callback | None = None,
    ) -> None:
        """Send an internal request, whose outcome is not returned by polls.

        Args:
            node_id: the node.
            codec: the codec for the request's version.
            body: the request.
            now: the current time on the event loop's clock, in seconds.
            callback: called as soon as the outcome is known; None for Metadata and ApiVersions,
                whose responses this class handles.
        """
        self.send(
            InFlightRequest(
                node_id,
                self.next_correlation_id(),
                codec,
                body,
                now,
                self._settings.timeout_seconds,
                is_internal=True,
                callback=callback,
            )
        )

    def fail(
        self, node_id: int, body: Message, callback: Callback | None, error: TrionetError
    ) -> int:
        """Complete a request that cannot be sent; the next poll returns the error."""
        correlation_id = self.next_correlation_id()
        response = ClientResponse(
            node_id=node_id, correlation_id=correlation_id, request=body, error=error
        )
        self.outcomes.add(callback, response)
        self._selector.wakeup()
        return correlation_id

    # Events.

    def handle_poll(self, result: PollResult, now: float) -> None:
        """Handle the result of a selector's poll, in Kafka's order (NetworkClient.poll).

        Completed sends come first, because one poll may report both the end of a send and the
        response to it. Disconnections come after receives, because a peer may respond and then
        close the connection. Timeouts come last, because a response in this poll is still on time.
        """
        for channel in result.completed_sends:
            if self._connections.channel(channel.attachment) is channel:
                self._handle_sent(channel.attachment, now)
        for channel, received in result.completed_receives:
            self._handle_received(channel, received, now)
        for channel in result.disconnected:
            self._handle_disconnected(channel, now)
        for node, cause, because in self._connections.take_failed():
            self._connection_failed(node, cause, because, now)
        for channel in result.connected:
            self.setup.connected(channel.attachment)
        self._discover(now)
        self._expire(now)

    def _handle_sent(self, node_id: int, now: float) -> None:
        request = self.in_flight.last_sent(node_id)
        request.is_sent = True
        if not request.expects_response:
            self._complete(self.in_flight.complete_last_sent(node_id), now)
            self._selector.wakeup()

    def _handle_received(self, channel: Channel, received: Frame, now: float) -> None:
        node_id: int = channel.attachment
        if self._connections.channel(node_id) is not channel:
            return  # the connection has been given up
        if not self.in_flight.count(node_id):
            self._close_invalid(node_id, "received a response with no request in flight", now)
            return
        request = self.in_flight.oldest(node_id)
        if not request.is_sent:
            why = f"received a response to {request!r} before the request was fully sent"
            self._close_invalid(node_id, why, now)
            return
        try:
            body = decode_response(request, received)
        except WireFormatError as error:
            self._complete(self.in_flight.complete_next(node_id), now, error=error)
            self._close_invalid(node_id, str(error), now)
            return
        self.in_flight.complete_next(node_id)
        unconfirmed = self.setup.unconfirmed
        if node_id in unconfirmed and request.codec.api_key != api_keys.API_VERSIONS:
            unconfirmed.discard(node_id)
            self.reachability.reached(self._connections.node(node_id))
        seconds = throttle_seconds(request.codec, body)
        self._counters.response_received(
            node_id, request.codec.api_key, len(received), now - request.sent_at, seconds
        )
        if seconds:
            self._states.throttle(node_id, now + seconds)
            self.in_flight.throttled(node_id, seconds)
        self._complete(request, now, body)

    def _complete(
        self,
        request: InFlightRequest,
        now: float,
        body: Any = None,
        error: TrionetError | None = None,
    ) -> None:
        if request.is_internal:
            self._complete_own(request, now, body, error)
            return
        self.outcomes.add(request.callback, request.outcome(now, body, error))

    def _complete_own(
        self, request: InFlightRequest, now: float, body: Any, error: TrionetError | None
    ) -> None:
        if request.callback is not None:
            request.callback(request.outcome(now, body, error))
        elif request.codec.api_key in _DESCRIPTIONS:
            if error is None:
                if isinstance(body, MetadataResponse) and request.codec.version < EPOCHS_VERSION:
                    forget_epochs(body)
                before = self._updater.metadata.cluster
                self._updater.handle_response(body, now)
                cluster = self._updater.metadata.cluster
                if before.is_bootstrap and not cluster.is_bootstrap:
                    self._close_unneeded(before, now)
                    self._adopt_connection(before.nodes.get(request.node_id), cluster, now)
                self._states.forget_departed(set(before.nodes), set(cluster.nodes))
                self.reachability.forget_departed(cluster)
            else:
                self._updater.handle_failure(now, error)
        elif error is None:
            node_id = request.node_id
            if not self.setup.handle_versions(node_id, request.codec.version, body):
                name = error_codes.name_of(body.error_code)
                self._close_invalid(node_id, f"ApiVersions failed: {name}", now)

    def _adopt_connection(self, asked: Node | None, cluster: Cluster, now: float) -> None:
        """Reuse a bootstrap connection for the broker that advertises the same address.

        librdkafka does the same. Otherwise every client would open a second connection to that
        broker, and leave the first one idle. A broker that has just been lost is in its backoff.
        """
        node = None if asked is None else cluster.node_at(asked.host, asked.port)
        if asked is None or node is None or not self._states.of(node.id).can_connect(now):
            return
        if self._connections.channel(asked.id) is None or self._states.is_awaited(asked.id):
            return
        self.setup.rename(asked.id, node.id)
        self.in_flight.rename(asked.id, node.id)
        self._states.rename(asked.id, node.id)
        self._connections.rename(asked.id, node.id)
        self._counters.rename(asked.id, node.id)
        self.reachability.reached(node)

    def _close_unneeded(self, bootstrap: Cluster, now: float) -> None:
        """Give up attempts to other bootstrap servers once one of them has responded."""
        for node_id in bootstrap.nodes:
            if self._states.of(node_id).is_preparing and not self._states.is_awaited(node_id):
                self.drop(node_id, now)

    def _discover(self, now: float) -> None:
        """Send ApiVersions on new connections as soon as they are ready (KAFKA-13388)."""
        for node_id in self.setup.due:
            channel = self._connections.channel(node_id)
            if channel is None or not channel.is_ready or channel.send is not None:
                continue
            request = self.setup.next_request(node_id)
            if request is not None:
                codec, body = request
                self.send_own(node_id, codec, body, now)

    # Lost connections and timeouts.

    def next_timeout(self) -> float:
        """Return when the next request or attempt times out, or the next connection turns slow."""
        return min(
            self.in_flight.next_expiry(),
            self._states.next_connect_timeout(),
            self._states.next_slow_at,
        )

    def _expire(self, now: float) -> None:
        """Log slow connections, and fail connection attempts and requests that have timed out."""
        for node_id in self._states.take_newly_slow(now):
            node = self._connections.node(node_id)
            self.reachability.silent(node, self._no_response(node_id, PATIENCE_SECONDS))
        for node_id in self._states.timed_out_connects(now):
            node = self._connections.node(node_id)
            seconds = min(PATIENCE_SECONDS, self._states.of(node_id).setup_seconds)
            cause = self._no_response(node_id, round(seconds, 1))
            self.give_up(node_id, self.reachability.silent(node, cause), now)
        for node_id in self.in_flight.timed_out_nodes(now):
            node = self._connections.node(node_id)
            request = self.in_flight.oldest(node_id)
            cause = f"no response to {request.codec.name} within {request.timeout_seconds:g} s"
            if node_id in self.setup.unconfirmed:
                self.reachability.silent(node, cause)
            late = RequestTimedOutError(f"{node}: {cause} (request.timeout.ms)")
            self.give_up(node_id, late, now)

    def _no_response(self, node_id: int, seconds: float) -> str:
        channel = self._connections.channel(node_id)
        return no_response(self._stage(node_id, channel), seconds)

    def _stage(self, node_id: int, channel: Channel | None) -> Stage:
        has_requests = self.in_flight.count(node_id) > 0
        return self.setup.stage(node_id, channel, has_requests=has_requests)

    def _close_invalid(self, node_id: int, why: str, now: float) -> None:
        """Close a connection whose peer violated the protocol."""
        node = self._connections.node(node_id)
        logger.warning("closing the connection to %s: %s", node, why)
        self._connections.close(node_id, CloseReason.INVALID_RECEIVE, why)
        self._lost(node_id, DisconnectedError(f"{node}: {why}"), now)

    def give_up(self, node_id: int, error: DisconnectedError, now: float) -> None:
        """Close a connection from the client's side, and fail its requests with ``error``."""
        logger.info("closing a connection: %s", error)
        self._connections.close(node_id, CloseReason.LOCAL_CLOSE, str(error))
        self._lost(node_id, error, now)

    def _handle_disconnected(self, channel: Channel, now: float) -> None:
        node = self._connections.ended(channel)
        if node is None:
            return
        stage = self._stage(node.id, channel)
        if stage is Stage.FIRST_REQUEST and channel.oversized_bytes:
            stage = Stage.IN_USE  # it did respond, but the frame was too large
        cause = cause_of_end(
            channel,
            stage,
            self._connections.protocol,
            has_worked=self.reachability.has_worked(node),
        )
        if channel.close_reason is CloseReason.AUTHENTICATION_FAILED:
            rejected = AuthenticationError(cause)
            failure = self.reachability.failed(node, cause, rejected, logging.ERROR)
            self._lost(node.id, AuthenticationError(str(failure)), now)
        elif stage is Stage.IN_USE:
            size = channel.oversized_bytes
            level = logging.WARNING if size else logging.INFO
            logger.log(level, "lost the connection to %s: %s", node, cause)
            if size:
                self._fail_too_large(node, size, now)
            self._lost(node.id, DisconnectedError(f"{node}: {cause}"), now)
        else:
            self._connection_failed(node, cause, channel.connect_error, now)

    def _connection_failed(
        self, node: Node, cause: str, because: BaseException | None, now: float
    ) -> None:
        """Handle a connection that could not be established or was lost before it was usable."""
        self._lost(node.id, self.reachability.failed(node, cause, because), now)

    def _fail_too_large(self, node: Node, size: int, now: float) -> None:
        """Fail the oldest request with ResponseTooLargeError instead of DisconnectedError."""
        if not self.in_flight.count(node.id):
            return
        request = self.in_flight.complete_next(node.id)
        bytes_max = self._connections.response_bytes_max
        error = ResponseTooLargeError(
            f"{node}: the response to {api_keys.name_of(request.codec.api_key)} is {size} bytes,"
            f" which exceeds this client's {RESPONSE_LIMIT} = {bytes_max}; set it to {size} or"
            " more",
            size,
            bytes_max,
        )
        self._complete(request, now, error=error)

    def _lost(
        self, node_id: int, error: AuthenticationError | DisconnectedError, now: float
    ) -> None:
        """Record the loss of a connection, and fail its requests in the order they were sent."""
        if isinstance(error, AuthenticationError):
            self._states.authentication_failed(node_id, error, now)
        else:
            self._states.disconnected(node_id, now, error)
        self.setup.forget(node_id)
        for request in self.in_flight.clear(node_id):
            self._complete(request, now, error=error)
        self._updater.connection_lost(error, now)

    def drop(self, node_id: int, now: float) -> None:
        """Discard a node and its requests in flight.

        Users' callbacks do not run; internal requests, and tasks awaiting a response, get an error.
        """
        self._connections.close(node_id, CloseReason.LOCAL_CLOSE)
        self.setup.forget(node_id)
        self._states.remove(node_id)
        for request in self.in_flight.clear(node_id):
            error = DisconnectedError(f"node {node_id}: the client closed the connection")
            if request.is_internal:
                self._complete(request, now, error=error)
            elif isinstance(request.callback, PendingResponse):
                request.callback.fail(error)

    def fail_all(self, error: DisconnectedError, now: float) -> None:
        """Fail all requests in flight, because the client is being closed."""
        for request in list(self.in_flight):
            self._complete(request, now, error=error)
        self.in_flight = InFlightRequests(self._settings.in_flight_max)
