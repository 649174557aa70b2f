"""The updaters that keep a client's metadata current, or leave that to the client's owner.

The requests are marked as internal, so that users' own Metadata requests are never mistaken for
them (KAFKA-4098). :class:`ManualMetadataUpdater` sends none: it is for programs that manage
brokers, such as a controller, which know the nodes from another source.

The updater needs the client to send requests, and the client needs the updater to decide whether a
metadata request goes first, so the two call each other, as in Kafka. The updater uses only the part
of the client in :class:`Requester`, so that the decisions can be tested without a network.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

import attrs

from ..._util._logging import get_logger
from ...errors import AuthenticationError, TrionetError, UnsupportedVersionError
from ...net._network import SYSTEM
from ...protocol import error_codes
from ...protocol._wire import Message
from ...protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ...protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from .._api_errors import api_error
from .._network_settings import MetadataTimes
from ._cluster import Node
from ._metadata import Metadata

logger = get_logger("trionet.client")

# The first version that can disable the creation of requested topics.
_FIRST_WITHOUT_CREATION = 4
# In version 0 an empty list of topics means all topics.
_FIRST_WITH_NO_TOPICS = 1
# The first version of DescribeCluster that can describe controllers, and their type (KIP-919).
_FIRST_WITH_CONTROLLERS = 1
_CONTROLLERS = 2
_WRONG_ENDPOINT = frozenset(
    {error_codes.MISMATCHED_ENDPOINT_TYPE, error_codes.UNSUPPORTED_ENDPOINT_TYPE}
)


class Requester(Protocol):
    """The part of :class:`.KafkaClient` that sends metadata requests."""

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]: ...

    def can_send(self, node_id: int, now: float) -> bool: ...

    def next_usable_delay(self, now: float) -> float: ...

    def have_all_failed(self) -> bool: ...

    def begin_connect(self, node: Node, now: float) -> bool: ...

    def disconnect_all(self) -> None: ...

    def send_internal(self, node: Node, body: Any, now: float, *, version_min: int) -> None: ...


class MetadataUpdater:
    """The source of a client's nodes, which by itself requests nothing (Kafka: MetadataUpdater).

    Args:
        metadata: the client's view of the cluster.
        is_automatic: whether metadata is requested; False if the client's owner sets nodes.

    Attributes:
        metadata: see the argument.
        is_automatic: see the argument.
    """

    def __init__(self, metadata: Metadata, *, is_automatic: bool) -> None:
        self.metadata = metadata
        self.is_automatic = is_automatic

    def is_due(self, now: float) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a metadata request must be sent now, before users' requests."""
        return False

    def maybe_update(self, client: Requester, now: float) -> float:  # noqa: ARG002 - the same
        """If an update is due, send a metadata request, or first connect to a node.

        Returns:
            The seconds until this must be called again, unless another event occurs first.
        """
        return math.inf

    def handle_response(self, body: MetadataResponse | DescribeClusterResponse, now: float) -> None:
        """Apply the response to a metadata request."""

    def handle_failure(self, now: float, error: TrionetError) -> None:
        """Record that a metadata request failed or could not be sent."""

    def connection_lost(self, error: TrionetError, now: float) -> None:
        """Handle a connection that was lost or could not be established."""


class DefaultMetadataUpdater(MetadataUpdater):
    """An updater that requests metadata from the least loaded node when an update is due.

    (Kafka: NetworkClient.DefaultMetadataUpdater.)

    Args:
        metadata: the metadata to update.
        of_controllers: whether the nodes are a cluster's controllers, which know no topics and
            are described by DescribeCluster (KIP-919).
    """

    def __init__(self, metadata: Metadata, *, of_controllers: bool = False) -> None:
        super().__init__(metadata, is_automatic=True)
        self.of_controllers = of_controllers
        self._is_in_progress = False
        self._is_rebootstrap_required = False
        self._ignored: set[int] = set()

    def is_due(self, now: float) -> bool:
        return not self._is_in_progress and self.metadata.time_to_next_update(now) <= 0

    def maybe_update(self, client: Requester, now: float) -> float:
        if self._is_in_progress:
            return math.inf  # until its response or timeout
        delay = self.metadata.time_to_next_update(now)
        if delay > 0:
            return delay
        if self.metadata.needs_rebootstrap(now):
            # The new cluster may reuse a node id of the old one (KIP-1102). The connections to
            # bootstrap servers and coordinators may lead to the old one, too.
            client.disconnect_all()
            why = "no metadata within metadata.recovery.rebootstrap.trigger.ms"
            self._rebootstrap("a broker requires it" if self._is_rebootstrap_required else why, now)
        node, has_ready = client.least_loaded_node(now)
        is_lost = node is None and not has_ready and not self.metadata.cluster.is_bootstrap
        if is_lost and self.metadata.can_rebootstrap and client.have_all_failed():
            self._rebootstrap("none of the known brokers can be reached", now)
            node, _ = client.least_loaded_node(now)
        self.metadata.attempt_started(now)
        if node is None:
            return client.next_usable_delay(now)
        if client.can_send(node.id, now):
            return self._send_request(client, node, now)
        client.begin_connect(node, now)
        return math.inf  # until the connect succeeds, fails or times out

    def _send_request(self, client: Requester, node: Node, now: float) -> float:
        metadata = self.metadata
        body: Message = metadata.request(now)
        oldest = _FIRST_WITH_NO_TOPICS
        if not metadata.allow_auto_topic_creation:
            oldest = _FIRST_WITHOUT_CREATION
        if self.of_controllers:
            body = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
            oldest = _FIRST_WITH_CONTROLLERS
        try:
            client.send_internal(node, body, now, version_min=oldest)
        except UnsupportedVersionError as error:
            self.handle_failure(now, error)
            return metadata.time_to_next_update(now)
        self._is_in_progress = True
        return math.inf

    def handle_response(self, body: MetadataResponse | DescribeClusterResponse, now: float) -> None:
        self._is_in_progress = False
        if isinstance(body, DescribeClusterResponse):
            if body.error_code:
                self.metadata.failed(now, _controllers_error(body))
                return
            response = _as_metadata(body)
        else:
            response = body
        if response.error_code == error_codes.REBOOTSTRAP_REQUIRED:
            self._is_rebootstrap_required = True
            self.metadata.require_rebootstrap()
            self.metadata.failed(now)
            return
        self._warn_of_ignored({each.node_id for each in response.brokers if each.node_id < 0})
        self.metadata.update(response, now)
        for topic in response.topics:
            if topic.error_code:
                name = error_codes.name_of(topic.error_code)
                logger.debug("metadata of topic %s: %s", topic.name, name)

    def _warn_of_ignored(self, node_ids: set[int]) -> None:
        """Warn of brokers that :func:`.nodes_of` leaves out, unless the last response had them."""
        if node_ids and node_ids != self._ignored:
            count, example = len(node_ids), max(node_ids)
            logger.warning("ignoring %d brokers with negative ids, such as %d", count, example)
        self._ignored = node_ids

    def handle_failure(self, now: float, error: TrionetError) -> None:
        self._is_in_progress = False
        self.metadata.failed(now, error)

    def connection_lost(self, error: TrionetError, now: float) -> None:
        """Request an update, because leaders may have moved.

        An authentication error fails the update instead, so that tasks waiting for metadata raise
        that error, unless a metadata request is in flight to another node (KAFKA-8933).
        """
        if isinstance(error, AuthenticationError) and not self._is_in_progress:
            self.metadata.failed(now, error)
        else:
            self.metadata.request_update()

    def _rebootstrap(self, why: str, now: float) -> None:
        logger.info("rebootstrapping from bootstrap.servers: %s", why)
        self._is_rebootstrap_required = False
        self.metadata.rebootstrap(now)


def _controllers_error(response: DescribeClusterResponse) -> TrionetError:
    error = api_error(response.error_code, "the controllers", response.error_message)
    if response.error_code in _WRONG_ENDPOINT:
        return UnsupportedVersionError(
            f"bootstrap.controllers names a node that is not a controller: {error}"
        )
    return error


def _as_metadata(response: DescribeClusterResponse) -> MetadataResponse:
    """Convert a DescribeCluster response about controllers to a Metadata response."""
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in response.brokers
        ],
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
    )


class ManualMetadataUpdater(MetadataUpdater):
    """The nodes of a client that never requests metadata; see :func:`.open_network_client`.

    A lost connection changes nothing here: the outcomes of the requests inform the client's owner.

    Args:
        nodes: the initial nodes.

    Raises:
        ValueError: see :meth:`set_nodes`.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        super().__init__(Metadata([], MetadataTimes(), SYSTEM.rng), is_automatic=False)
        self.set_nodes(nodes)

    @property
    def nodes(self) -> list[Node]:
        """The most recently set nodes (Kafka: fetchNodes)."""
        return list(self.metadata.cluster.nodes.values())

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the nodes from which ``least_loaded_node`` chooses.

        Connections are not affected: a connection to a node that was removed, or whose address has
        changed, stays open until it is lost or closed with ``client.close(node)``.

        Raises:
            ValueError: a node id is negative, or occurs more than once.
        """
        found: dict[int, Node] = {}
        for node in nodes:
            if node.id < 0:
                raise ValueError(f"node id {node.id} ({node.address}) must be 0 or more")
            if node.id in found:
                addresses = f"{found[node.id].address} and {node.address}"
                raise ValueError(f"duplicate node id {node.id}: {addresses}")
            found[node.id] = node
        before = self.metadata.cluster
        self.metadata.cluster = attrs.evolve(before, nodes=found, is_bootstrap=False)
