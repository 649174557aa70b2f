"""Asks for the cluster's metadata when they are due, and decides whom.

(Kafka: NetworkClient.DefaultMetadataUpdater.) Its requests are marked as the client's own, so that
those of users are never taken for them (KAFKA-4098).
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
from typing import Any, Protocol

from ...errors import AuthenticationError, TrionetError, UnsupportedVersionError
from ...protocol import error_codes
from ...protocol._wire import Message
from ...protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ...protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from .._api_errors import api_error
from .._node import Node
from ._metadata import Metadata

logger = logging.getLogger("trionet.client")

# The first version that can forbid to make a topic by asking for it.
_FIRST_WITHOUT_CREATION = 4
# Before it no topics at all meant all topics.
_FIRST_WITH_NO_TOPICS = 1
# The first version of DescribeCluster that can ask for controllers, and how (KIP-919).
_FIRST_WITH_CONTROLLERS = 1
_CONTROLLERS = 2
_WRONG_ENDPOINT = frozenset(
    {error_codes.MISMATCHED_ENDPOINT_TYPE, error_codes.UNSUPPORTED_ENDPOINT_TYPE}
)


class Asker(Protocol):
    """What is needed here of a NetworkClient."""

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]: ...

    def can_send(self, node_id: int, now: float) -> bool: ...

    def soonest(self, now: float) -> float: ...

    def begin_connect(self, node: Node, now: float) -> bool: ...

    def disconnect(self, node: Node) -> None: ...

    def send_internal(self, node: Node, body: Any, now: float, *, version_min: int) -> None: ...


class MetadataUpdater:
    """Keeps a :class:`.Metadata` up to date.

    Args:
        metadata: what it keeps.
        of_controllers: the nodes are the controllers of a cluster, which know nothing of topics
            and are described by another request (KIP-919).

    Attributes:
        asks: whether metadata are ever asked for; not where the owner gives the nodes.
    """

    def __init__(self, metadata: Metadata, *, of_controllers: bool = False) -> None:
        self.metadata = metadata
        self.of_controllers = of_controllers
        self.asks = True
        self._is_asking = False

    def is_due(self, now: float) -> bool:
        """Whether a request should go out now, before those of users."""
        return not self._is_asking and self.metadata.time_to_next_update(now) <= 0

    def maybe_update(self, asker: Asker, now: float) -> float:
        """Ask if it is due.

        Returns:
            Seconds until this has to be called again, if nothing else happens before.
        """
        if self._is_asking:
            return math.inf  # the request has a time of its own
        delay = self.metadata.time_to_next_update(now)
        if delay > 0:
            return delay
        if self.metadata.needs_rebootstrap(now):
            # A node of the new cluster may have the id of one of the old (KIP-1102).
            for each in list(self.metadata.cluster.nodes.values()):
                asker.disconnect(each)
            self._rebootstrap("no broker describes the cluster any more", now)
        node, has_ready = asker.least_loaded_node(now)
        is_lost = node is None and not has_ready and not self.metadata.cluster.is_bootstrap
        if is_lost and self.metadata.can_rebootstrap:
            self._rebootstrap("none of the known brokers can be reached", now)
            node, _ = asker.least_loaded_node(now)
        self.metadata.asking_since(now)
        if node is None:
            return asker.soonest(now)
        if asker.can_send(node.id, now):
            return self._ask(asker, node, now)
        asker.begin_connect(node, now)
        return math.inf  # how a connect ends, a poll tells

    def _ask(self, asker: Asker, node: Node, now: float) -> float:
        metadata = self.metadata
        body: Message = metadata.request()
        oldest = _FIRST_WITH_NO_TOPICS
        if not metadata.allow_auto_topic_creation:
            oldest = _FIRST_WITHOUT_CREATION
        if self.of_controllers:
            body = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
            oldest = _FIRST_WITH_CONTROLLERS
        metadata.asked(now)
        try:
            asker.send_internal(node, body, now, version_min=oldest)
        except UnsupportedVersionError as error:
            self.failed(now, error)
            return metadata.time_to_next_update(now)
        self._is_asking = True
        return math.inf

    def answered(self, answer: MetadataResponse | DescribeClusterResponse, now: float) -> None:
        """A request of ours was answered."""
        self._is_asking = False
        if isinstance(answer, DescribeClusterResponse):
            if answer.error_code:
                self.metadata.failed(now, _no_controllers(answer))
                return
            response = _of_controllers(answer)
        else:
            response = answer
        if response.error_code == error_codes.REBOOTSTRAP_REQUIRED:
            self.metadata.require_rebootstrap()
            self.metadata.failed(now)
            return
        self.metadata.update(response, now)
        for topic in self.metadata.cluster.topics.values():
            if topic.error_code:
                name = error_codes.name_of(topic.error_code)
                logger.debug("the metadata of topic %s: %s", topic.name, name)

    def failed(self, now: float, error: TrionetError) -> None:
        """A request of ours was not answered, or could not be made."""
        self._is_asking = False
        self.metadata.failed(now, error)

    def connection_lost(self, error: TrionetError, now: float) -> None:
        """A connection is gone: who leads what may have changed.

        One that was not let in is told to whoever waits for metadata, unless another node is being
        asked (KAFKA-8933).
        """
        if isinstance(error, AuthenticationError) and not self._is_asking:
            self.metadata.failed(now, error)
        else:
            self.metadata.request_update()

    def _rebootstrap(self, why: str, now: float) -> None:
        logger.info("starting again from bootstrap.servers: %s", why)
        self.metadata.rebootstrap(now)


def _no_controllers(answer: DescribeClusterResponse) -> TrionetError:
    error = api_error(answer.error_code, "the controllers", answer.error_message)
    if answer.error_code in _WRONG_ENDPOINT:
        return UnsupportedVersionError(
            f"bootstrap.controllers names a node that is no controller: {error}"
        )
    return error


def _of_controllers(answer: DescribeClusterResponse) -> MetadataResponse:
    """The same as an answer about brokers."""
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in answer.brokers
        ],
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
    )
