"""What travels to the nodes and back: requests, answers, and what becomes of both when one is lost.

The inner half of a NetworkClient's turn. Nothing here waits.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, Final, cast

from ...errors import (
    AuthenticationError,
    DisconnectedError,
    RequestTimedOutError,
    ResponseTooLargeError,
    TrionetError,
    WireFormatError,
)
from ...net._channel import Channel
from ...net._poll_result import PollResult
from ...net._selector import Selector
from ...net.wire._close_reason import CloseReason
from ...net.wire._framing import Frame
from ...net.wire._transmission import Send
from ...protocol import api_keys
from ...protocol._codec import ApiVersionCodec
from ...protocol._header import decode_response_header, encode_request_header, frame
from ...protocol._wire import Chunk, Message
from .._node import Node
from ..connections._connection_errors import Stage, cause_of_end, silence, stage_of
from ..connections._connection_states import (
    PATIENCE_SECONDS,
    ClusterConnectionStates,
    ConnectionState,
)
from ..connections._connections import RESPONSE_LIMIT, Connections
from ..connections._reachability import Reachability
from ..metadata._cluster import Cluster
from ..metadata._metadata_updater import MetadataUpdater
from ..metrics._counters import ClientCounters
from ..requests._api_versions import NodeApiVersions
from ..requests._in_flight import InFlightRequest, InFlightRequests
from ..requests._pending_response import AwaitedAnswer
from ..requests._record_chunks import flattened
from ..requests._response import ClientResponse
from ..requests._throttling import throttle_seconds
from ..requests._version_discovery import VersionDiscovery, response_codec
from ..security._sasl_client_authenticator import RESERVED_IDS
from ._request_settings import RequestSettings

logger = logging.getLogger("trionet.client")

Callback = Callable[[ClientResponse], None]

# Those above are for SASL (Kafka: SaslClientAuthenticator.MIN_RESERVED_CORRELATION_ID).
CORRELATION_ID_MAX = RESERVED_IDS[0] - 1

_DESCRIPTIONS: Final = frozenset({api_keys.METADATA, api_keys.DESCRIBE_CLUSTER})


class Exchange:
    """All that is under way, and what became of it.

    Args:
        selector: of this client alone.
        connections: the channels over it.
        states: of the connections.
        updater: told of answers to its requests, and of nodes that are lost.
        settings: of requests.
        counters: told of what is sent and answered.
        awaited: the ids of nodes that somebody waits for, by that name.

    Attributes:
        in_flight: what was sent and not answered.
        versions: what each connected node serves.
        reachability: which nodes were reached, and why others were not.
    """

    def __init__(
        self,
        selector: Selector,
        connections: Connections,
        states: ClusterConnectionStates,
        updater: MetadataUpdater,
        settings: RequestSettings,
        counters: ClientCounters,
        awaited: Collection[int],
    ) -> None:
        self.in_flight = InFlightRequests(settings.in_flight_max)
        self._counters = counters
        self._awaited = awaited
        self.versions: dict[int, NodeApiVersions] = {}
        self.reachability = Reachability(are_advertised=updater.asks)
        self._selector = selector
        self._connections = connections
        self._states = states
        self._updater = updater
        self._settings = settings
        self._discovery = VersionDiscovery()
        self._unproven: set[int] = set()
        self._completed: list[tuple[Callback | None, ClientResponse]] = []
        self._last_correlation_id = -1

    # Requests.

    def next_correlation_id(self) -> int:
        last = self._last_correlation_id
        self._last_correlation_id = 0 if last >= CORRELATION_ID_MAX else last + 1
        return self._last_correlation_id

    def send(self, request: InFlightRequest) -> None:
        """Send a request to a node that can take it.

        Raises:
            LocalProtocolError: the body cannot be encoded.
        """
        channel = self._connections.channel(request.node_id)
        assert channel is not None
        codec = request.codec
        header = encode_request_header(codec, request.correlation_id, self._settings.client_id)
        chunks: list[Chunk] = [header]
        codec.encode_request(request.body, chunks)
        framed = frame(flattened(chunks))
        outgoing = cast(bytes, framed[0]) if len(framed) == 1 else Send(cast(Any, framed))
        self.in_flight.add(request)
        self._counters.sent(
            request.node_id, outgoing.size if isinstance(outgoing, Send) else len(outgoing)
        )
        self._selector.look_at_clock()
        if self._selector.send(channel, outgoing):
            self._sent(request.node_id, request.sent_at)
        elif channel.send is None:
            self._selector.wakeup()  # it failed: no event will end the poll under way
        if not channel.is_open:
            self._selector.wakeup()  # the poll under way has to tell that it failed

    def send_own(
        self,
        node_id: int,
        codec: ApiVersionCodec,
        body: Message,
        now: float,
        callback: Callback | None = None,
    ) -> None:
        """Send a request of the client's own, of which users never hear.

        Args:
            node_id: where it goes.
            codec: its version.
            body: what is asked.
            now: in seconds of the loop's clock.
            callback: told of the outcome at once; None for requests that this knows the owner of.
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

    def refuse(
        self, node_id: int, body: Message, callback: Callback | None, error: TrionetError
    ) -> int:
        """A request that cannot be sent; its outcome is handed out as others are."""
        correlation_id = self.next_correlation_id()
        response = ClientResponse(
            node_id=node_id, correlation_id=correlation_id, request=body, error=error
        )
        self._completed.append((callback, response))
        self._selector.wakeup()
        return correlation_id

    # Outcomes.

    @property
    def has_completed(self) -> bool:
        """Whether outcomes wait to be handed out."""
        return bool(self._completed)

    def hand_out(self) -> list[ClientResponse]:
        """The outcomes since the last time, in their order, after their callbacks ran (X14)."""
        completed, self._completed = self._completed, []
        for callback, response in completed:
            if callback is None:
                continue
            try:
                callback(response)
            except Exception:  # boundary: one callback
                logger.exception("the callback of a request to node %d failed", response.node_id)
        return [response for _, response in completed]

    def take(self, result: PollResult, now: float) -> None:
        """Look at what a poll of the selector brought, in Kafka's order."""
        for channel in result.completed_sends:
            if self._connections.channel(channel.attachment) is channel:
                self._sent(channel.attachment, now)
        for channel, received in result.completed_receives:
            self._received(channel, received, now)
        for channel in result.disconnected:
            self._disconnected(channel, now)
        for node, cause in self._connections.take_failed().values():
            self._unreached(node, cause, now)
        for channel in result.connected:
            self._discovery.connected(channel.attachment)
        self._discover(now)
        self._end_late(now)

    def _sent(self, node_id: int, now: float) -> None:
        request = self.in_flight.last_sent(node_id)
        request.is_sent = True
        if not request.is_answered:
            self._complete(self.in_flight.complete_last_sent(node_id), now)
            self._selector.wakeup()

    def _received(self, channel: Channel, received: Frame, now: float) -> None:
        node_id: int = channel.attachment
        if self._connections.channel(node_id) is not channel:
            return  # given up meanwhile
        if not self.in_flight.count(node_id):
            self._break_off(node_id, "it sent an answer to nothing", now)
            return
        request = self.in_flight.oldest(node_id)
        if not request.is_sent:
            self._break_off(node_id, f"it answered {request!r} before that had left", now)
            return
        try:
            body = _decode(request, received)
        except WireFormatError as error:
            self._complete(self.in_flight.complete_next(node_id), now, error=error)
            self._break_off(node_id, str(error), now)
            return
        self.in_flight.complete_next(node_id)
        if self._unproven and request.codec.api_key != api_keys.API_VERSIONS:
            self._prove(node_id)
        seconds = throttle_seconds(request.codec, body)
        self._counters.answered(
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
        self._completed.append((request.callback, _outcome(request, now, body, error)))

    def _complete_own(
        self, request: InFlightRequest, now: float, body: Any, error: TrionetError | None
    ) -> None:
        if request.callback is not None:
            request.callback(_outcome(request, now, body, error))
        elif request.codec.api_key in _DESCRIPTIONS:
            if error is None:
                before = self._updater.metadata.cluster
                self._updater.answered(body, now)
                cluster = self._updater.metadata.cluster
                if before.is_bootstrap and not cluster.is_bootstrap:
                    self._close_losers(before, now)
                    self._keep_connection(before.nodes.get(request.node_id), cluster)
                self._states.keep_up(set(before.nodes), set(cluster.nodes))
                self.reachability.keep_up(cluster)
            else:
                self._updater.failed(now, error)
        elif error is None:
            self._learn_versions(request, body, now)

    def _keep_connection(self, asked: Node | None, cluster: Cluster) -> None:
        """The connection of a bootstrap server is that of the node that is reached there.

        (As in librdkafka.) Otherwise each client would make one more, and leave this to idle.
        """
        node = None if asked is None else cluster.node_at(asked.host, asked.port)
        if asked is None or node is None or self._states.state(node.id) is not None:
            return
        if self._connections.channel(asked.id) is None or asked.id in self._awaited:
            return
        self.versions[node.id] = self.versions.pop(asked.id)
        self.in_flight.rename(asked.id, node.id)
        self._states.rename(asked.id, node.id)
        self._connections.rename(asked.id, node.id)
        self._counters.rename(asked.id, node.id)
        self.reachability.reached(node)

    def _close_losers(self, bootstrap: Cluster, now: float) -> None:
        """Another bootstrap server has responded: give up those that have not even connected."""
        for node_id in bootstrap.nodes:
            if self._states.is_preparing(node_id) and node_id not in self._awaited:
                self.drop(node_id, now)

    # Versions.

    def _discover(self, now: float) -> None:
        """Ask new connections for their versions, once they can be sent to (KAFKA-13388)."""
        for node_id in self._discovery.due:
            channel = self._connections.channel(node_id)
            if channel is None or not channel.is_ready or channel.send is not None:
                continue
            if self._settings.discover_versions:
                codec, question = self._discovery.question(node_id)
                self._states.checking_api_versions(node_id)
                self.send_own(node_id, codec, question, now)
            else:
                self._discovery.forget(node_id)
                self._become_ready(node_id, NodeApiVersions())

    def _learn_versions(self, request: InFlightRequest, body: Any, now: float) -> None:
        node_id = request.node_id
        if not self._discovery.answered(node_id, request.codec.version, body):
            self._break_off(node_id, f"it answers ApiVersions with error {body.error_code}", now)
        elif not body.error_code:
            self._become_ready(node_id, NodeApiVersions(body))

    def _become_ready(self, node_id: int, versions: NodeApiVersions) -> None:
        self.versions[node_id] = versions
        self._states.ready(node_id)
        self._unproven.add(node_id)

    def _prove(self, node_id: int) -> None:
        """A node has responded to more than the question for its versions: it lets us in."""
        if node_id in self._unproven:
            self._unproven.discard(node_id)
            self.reachability.reached(self._connections.node(node_id))

    # Ends.

    def _stage(self, node_id: int, channel: Channel | None) -> Stage:
        """How far a connection has come, were it at its end."""
        is_checking = self._states.state(node_id) is ConnectionState.CHECKING_API_VERSIONS
        is_unproven = node_id in self._unproven and self.in_flight.count(node_id) > 0
        return stage_of(channel, is_checking=is_checking, is_unproven=is_unproven)

    def _end_late(self, now: float) -> None:
        """Say what is slow, and give up connects and answers that took longer than they may."""
        for node_id in self._states.take_slow(now):
            node = self._connections.node(node_id)
            self.reachability.failed(node, self._silence(node_id, PATIENCE_SECONDS))
        for node_id in self._states.late_connects(now):
            node = self._connections.node(node_id)
            seconds = min(PATIENCE_SECONDS, self._states.setup_seconds(node_id))
            cause = self._silence(node_id, round(seconds, 1))
            self.reachability.failed(node, cause)
            self.give_up(node_id, DisconnectedError(f"could not connect to {node}: {cause}"), now)
        for node_id in self.in_flight.late_nodes(now):
            node = self._connections.node(node_id)
            request = self.in_flight.oldest(node_id)
            cause = f"no response to {request.codec.name} within {request.timeout_seconds:g} s"
            if node_id in self._unproven:
                self.reachability.failed(node, cause)
            late = RequestTimedOutError(f"{node}: {cause} (request.timeout.ms)")
            self.give_up(node_id, late, now)

    def _silence(self, node_id: int, seconds: float) -> str:
        stage = self._stage(node_id, self._connections.channel(node_id))
        return silence(stage, seconds)

    def _break_off(self, node_id: int, why: str, now: float) -> None:
        """End a connection by its peer's fault."""
        node = self._connections.node(node_id)
        logger.warning("the connection to %s is closed: %s", node, why)
        self._connections.close(node_id, CloseReason.INVALID_RECEIVE, why)
        self._lost(node_id, DisconnectedError(f"{node}: {why}"), now)

    def give_up(self, node_id: int, error: DisconnectedError, now: float) -> None:
        """End a connection by our own decision; its requests end with ``error``."""
        logger.info("the connection is closed: %s", error)
        self._connections.close(node_id, CloseReason.LOCAL_CLOSE, str(error))
        self._lost(node_id, error, now)

    def _disconnected(self, channel: Channel, now: float) -> None:
        node = self._connections.ended(channel)
        if node is None:
            return
        stage = self._stage(node.id, channel)
        if stage is Stage.FIRST_REQUEST and channel.oversized_bytes:
            stage = Stage.IN_USE  # it has responded, though with too much
        cause = cause_of_end(channel, stage, self._connections.protocol)
        if channel.close_reason is CloseReason.AUTHENTICATION_FAILED:
            self.reachability.failed(node, cause, logging.ERROR)
            self._lost(node.id, AuthenticationError(f"could not connect to {node}: {cause}"), now)
        elif stage is Stage.IN_USE:
            size = channel.oversized_bytes
            level = logging.WARNING if size else logging.INFO
            logger.log(level, "the connection to %s has ended: %s", node, cause)
            if size:
                self._too_large(node, size, now)
            self._lost(node.id, DisconnectedError(f"{node}: {cause}"), now)
        else:
            self._unreached(node, cause, now)

    def _unreached(self, node: Node, cause: str, now: float) -> None:
        """A connection could not be made, or ended before it was of use."""
        self.reachability.failed(node, cause)
        self._lost(node.id, DisconnectedError(f"could not connect to {node}: {cause}"), now)

    def _too_large(self, node: Node, size: int, now: float) -> None:
        """The next response is larger than we take: that is no lost connection for its request."""
        if not self.in_flight.count(node.id):
            return
        request = self.in_flight.complete_next(node.id)
        bytes_max = self._connections.response_bytes_max
        error = ResponseTooLargeError(
            f"{node}: the response to {api_keys.name_of(request.codec.api_key)} has {size}"
            f" bytes, more than {RESPONSE_LIMIT} = {bytes_max} of this client allows; set it to"
            f" {size} or more",
            size,
            bytes_max,
        )
        self._complete(request, now, error=error)

    def _lost(
        self, node_id: int, error: AuthenticationError | DisconnectedError, now: float
    ) -> None:
        """A connection is no more: so is what was in flight on it, in the order it was sent."""
        if isinstance(error, AuthenticationError):
            self._states.authentication_failed(node_id, error, now)
        else:
            self._states.disconnected(node_id, now, error)
        self._forget(node_id)
        for request in self.in_flight.clear(node_id):
            self._complete(request, now, error=error)
        self._updater.connection_lost(error, now)

    def _forget(self, node_id: int) -> None:
        self._discovery.forget(node_id)
        self._unproven.discard(node_id)
        self.versions.pop(node_id, None)

    def drop(self, node_id: int, now: float) -> None:
        """Forget a node and what is in flight to it; users are told of nothing."""
        self._connections.close(node_id, CloseReason.LOCAL_CLOSE)
        self._forget(node_id)
        self._states.remove(node_id)
        for request in self.in_flight.clear(node_id):
            error = DisconnectedError(f"node {node_id}: the client closed the connection")
            if request.is_internal:
                self._complete(request, now, error=error)
            elif isinstance(request.callback, AwaitedAnswer):
                request.callback.fail(error)

    def end_all(self, error: DisconnectedError, now: float) -> None:
        """The client is closed: nothing that is in flight will be answered."""
        for request in list(self.in_flight):
            self._complete(request, now, error=error)
        self.in_flight = InFlightRequests(self._settings.in_flight_max)


def _outcome(
    request: InFlightRequest, now: float, body: Any, error: TrionetError | None
) -> ClientResponse:
    return ClientResponse(
        node_id=request.node_id,
        correlation_id=request.correlation_id,
        request=request.body,
        body=body,
        error=error,
        latency_seconds=now - request.sent_at,
    )


def _decode(request: InFlightRequest, received: Frame) -> Any:
    """The body of an answer, in the version of its question."""
    codec = request.codec
    correlation_id, pos = decode_response_header(codec, received)
    if correlation_id != request.correlation_id:
        raise WireFormatError(
            f"the answer is to request {correlation_id}, where {request.correlation_id} is the next"
        )
    if codec.api_key == api_keys.API_VERSIONS:
        codec = response_codec(codec, received, pos)
    return codec.decode_response(received, pos)
