"""Finds the broker for a request: any broker, the controller, a coordinator or a leader.

A call with a single request needs a :class:`Node`; a call about many items takes a :class:`Place`,
which finds the broker of each. (Kafka: the node providers of KafkaAdminClient, and
AdminApiLookupStrategy.) Locations are not cached, since admin calls are rare and a cached location
may be stale.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

import trio

from ...errors import ApiError, TrionetError, UnsupportedVersionError
from ...protocol import error_codes
from ...protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from .._api_errors import api_error, coordinator_error
from .._argument_checks import integer
from .._topic_partition import TopicPartition, by_topic
from ..network._cluster import Node, nodes_of
from ..network._kafka_client import KafkaClient
from ..network._open_client import until_broker_ready

K = TypeVar("K")

CONTROLLER_CODES: Final = frozenset({error_codes.NOT_CONTROLLER})
"""The error codes of a node that is no longer the controller."""

COORDINATOR_CODES: Final = frozenset(
    {
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
    }
)
"""The error codes of a coordinator that has moved or is loading (Kafka: CoordinatorStrategy)."""

LEADER_CODES: Final = frozenset(
    {
        error_codes.FENCED_LEADER_EPOCH,
        error_codes.KAFKA_STORAGE_ERROR,
        error_codes.LEADER_NOT_AVAILABLE,
        error_codes.NOT_LEADER_OR_FOLLOWER,
        error_codes.OFFSET_NOT_AVAILABLE,
        error_codes.REPLICA_NOT_AVAILABLE,
        error_codes.UNKNOWN_LEADER_EPOCH,
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The error codes of a leader that has moved or is unknown (Kafka: PartitionLeaderStrategy)."""

# The number of nodes that an error names; further nodes are only counted.
_NAMED_MAX: Final = 20

# A call to all brokers must not miss a broker that has just joined.
_FRESH_SECONDS: Final = 1.0
_MANY_KEYS_VERSION: Final = 4  # KIP-699

# The key types of FindCoordinator requests.
_GROUP: Final = 0
_TRANSACTION: Final = 1


class Place(NamedTuple, Generic[K]):
    """Where the requests of a call about many items are sent.

    Attributes:
        find: returns the responsible broker of each item, or an error if none is known.
        retried: the error codes that a broker returns for an item if another broker has become
            responsible, or the broker is not ready yet.
    """

    find: Callable[[Sequence[K]], Awaitable[Mapping[K, Node | TrionetError]]]
    retried: frozenset[int] = frozenset()


class Nodes:
    """Finds the brokers for an admin client's requests.

    Args:
        client: the client that sends the lookups.
        of_controllers: whether the client's nodes are controllers (KIP-919).

    Attributes:
        of_controllers: whether the client's nodes are controllers.
    """

    def __init__(self, client: KafkaClient, *, of_controllers: bool = False) -> None:
        self.of_controllers = of_controllers
        self._client = client
        self._updates = 0

    def refresh(self) -> None:
        """Make the next lookup wait for new metadata."""
        self._updates = self._client.metadata.request_update()

    async def known(self) -> Mapping[int, Node]:
        """Return all known brokers, keyed by id.

        While the client has returned to its bootstrap servers, this waits: brokers are not known by
        their ids then, and the servers need not be all of them.
        """
        while True:
            await self._client.until_updated(self._updates)
            cluster = self._client.metadata.cluster
            if not cluster.is_bootstrap:
                return cluster.nodes
            self.refresh()

    async def all(self) -> Mapping[int, Node]:
        """Return all brokers, keyed by id, from metadata at most a second old."""
        if self._client.metadata.age(trio.current_time()) > _FRESH_SECONDS:
            self.refresh()
        return await self.known()

    async def any(self) -> Node:
        """Wait until a broker is ready, and return the least loaded one.

        If the nodes are controllers, return the active one, since the others may lag (Kafka:
        LeastLoadedBrokerOrActiveKController).
        """
        if self.of_controllers:
            return await self.controller()
        return await until_broker_ready(self._client, self._updates)

    async def controller(self) -> Node:
        """Return the controller, or a broker that forwards to it (KIP-590)."""
        while True:
            nodes = await self.known()
            node = nodes.get(self._client.metadata.cluster.controller)
            if node is not None:
                return node
            self.refresh()

    async def broker(self, node_id: int) -> Node:
        """Return the broker with this id.

        Raises:
            ApiError: BROKER_NOT_AVAILABLE if there is currently no such broker.
            TypeError: the id is not an int.
        """
        node_id = integer("a broker id", node_id)
        nodes = await self.known()
        if node_id not in nodes:
            known = ", ".join(map(str, sorted(nodes)[:_NAMED_MAX]))
            more = f" and {len(nodes) - _NAMED_MAX} more" if len(nodes) > _NAMED_MAX else ""
            raise api_error(
                error_codes.BROKER_NOT_AVAILABLE,
                f"node {node_id}",
                f"there is no such node; the {'controllers' if self.of_controllers else 'brokers'}"
                f" are {known}{more}",
            )
        return nodes[node_id]

    def problem(self) -> str:
        """See :meth:`.NetworkClient.connection_problem`."""
        return self._client.connection_problem()

    def controller_problem(self) -> str:
        """Return why :meth:`controller` waits although there are brokers; empty if it does not."""
        cluster = self._client.metadata.cluster
        if cluster.is_bootstrap or cluster.controller in cluster.nodes:
            return ""
        return f"the controller, node {cluster.controller}, is not among the nodes of the cluster"

    def last_error(self) -> TrionetError | None:
        """Return the connection error of some broker; None if no connection has failed."""
        if error := self._client.connection_error():
            return error
        nodes = self._client.metadata.cluster.nodes.values()
        errors = (self._client.connection(each).error for each in nodes)
        return next((each for each in errors if each is not None), None)

    # Places for many items.

    @property
    def at_any(self) -> Place[Any]:
        """The same arbitrary broker for all items."""
        return _all_at(self.any)

    @property
    def at_controller(self) -> Place[Any]:
        """The controller for all items."""
        return _all_at(self.controller, CONTROLLER_CODES)

    @property
    def at_leaders(self) -> Place[TopicPartition]:
        """The leader of each partition."""
        return Place(self._leaders, LEADER_CODES)

    @property
    def at_groups(self) -> Place[str]:
        """The coordinator of each group."""
        return Place(partial(self._coordinators, _GROUP), COORDINATOR_CODES)

    def at_group(self, group: str) -> Place[Any]:
        """Return the place of one group's coordinator, for all items."""

        async def find() -> Node | TrionetError:
            return (await self._coordinators(_GROUP, [group]))[group]

        return _all_at(find, COORDINATOR_CODES)

    @property
    def at_transactions(self) -> Place[str]:
        """The coordinator of each transactional id."""
        return Place(partial(self._coordinators, _TRANSACTION), COORDINATOR_CODES)

    def at_brokers(self, node_id_of: Callable[[K], int]) -> Place[K]:
        """Return the place of the broker whose id ``node_id_of`` returns for each item."""

        async def find(keys: Sequence[K]) -> dict[K, Node | TrionetError]:
            found: dict[K, Node | TrionetError] = {}
            await trio.lowlevel.checkpoint()
            for key in keys:
                try:
                    found[key] = await self.broker(node_id_of(key))
                except ApiError as error:
                    found[key] = error
            return found

        return Place(find)

    async def _coordinators(self, kind: int, keys: Sequence[str]) -> dict[str, Node | TrionetError]:
        node = await self.any()
        with suppress(UnsupportedVersionError):
            response: FindCoordinatorResponse = await self._client.request(
                node,
                FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys)),
                version_min=_MANY_KEYS_VERSION,
            )
            missing = partial(api_error, error_codes.COORDINATOR_NOT_AVAILABLE)
            found = {each.key: _coordinator(each, each.key) for each in response.coordinators}
            return {
                key: found.get(key) or missing(key, "missing from the response") for key in keys
            }
        return {key: await self._coordinator(node, kind, key) for key in keys}

    async def _coordinator(self, node: Node, kind: int, key: str) -> Node | TrionetError:
        response: FindCoordinatorResponse = await self._client.request(
            node,
            FindCoordinatorRequest(key=key, key_type=kind),
            version_min=1 if kind else 0,
            version_max=_MANY_KEYS_VERSION - 1,
        )
        return _coordinator(response, key)

    async def _leaders(
        self, wanted: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Node | TrionetError]:
        response: MetadataResponse = await self._client.request(
            await self.any(),
            MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in by_topic(wanted)],
                allow_auto_topic_creation=False,
            ),
            version_min=4,  # the first that can request topics without creating them
        )
        nodes = nodes_of(response.brokers)
        topics = {each.name: each for each in response.topics}
        return {each: _leader(each, topics.get(each.topic), nodes) for each in wanted}


def _all_at(
    find_one: Callable[[], Awaitable[Node | TrionetError]],
    retried: frozenset[int] = frozenset(),
) -> Place[Any]:
    async def find(keys: Sequence[Any]) -> dict[Any, Node | TrionetError]:
        return dict.fromkeys(keys, await find_one())

    return Place(find, retried)


def _coordinator(found: Coordinator | FindCoordinatorResponse, key: str) -> Node | TrionetError:
    return coordinator_error(found, key) or Node(found.node_id, found.host, found.port)


def _leader(
    partition: TopicPartition, topic: MetadataResponseTopic | None, nodes: Mapping[int, Node]
) -> Node | TrionetError:
    code = topic.error_code if topic is not None else error_codes.UNKNOWN_TOPIC_OR_PARTITION
    if topic is not None and not code:
        found = [each for each in topic.partitions if each.partition_index == partition.partition]
        if found and found[0].leader_id in nodes:
            return nodes[found[0].leader_id]
        code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
        if found:
            code = found[0].error_code or error_codes.LEADER_NOT_AVAILABLE
    return api_error(code, str(partition))
