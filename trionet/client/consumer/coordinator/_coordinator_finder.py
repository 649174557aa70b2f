"""Lookup of a group's coordinator (Kafka: AbstractCoordinator.lookupCoordinator)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import attrs
import trio

from ...._util._logging import get_logger
from ....errors import DisconnectedError
from ....protocol._codec import api_key_of
from ....protocol._wire import Message
from ....protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ..._api_errors import coordinator_error, is_retriable
from ...network._cluster import COORDINATOR_ID_BASE, Node
from ...network._kafka_client import KafkaClient
from ...network._open_client import until_any_ready
from ...network._responses import PendingResponse
from ._classic_member import GroupSettings

LOGGER: Final = get_logger(__name__)

_KEY_TYPE_GROUP: Final = 0
_MANY_KEYS_VERSION: Final = 4

Body = Callable[[int], Message]
"""A function that builds the request for a given API version."""


class CoordinatorFinder:
    """Finds one group's coordinator when it is needed, and sends requests to it.

    Args:
        client: polled by the network task.
        settings: the group settings.
        rng: jitters backoffs.

    Attributes:
        client: see the argument.
        node: the coordinator; None if it is unknown.
    """

    def __init__(self, client: KafkaClient, settings: GroupSettings, rng: random.Random) -> None:
        self.client = client
        self._settings = settings
        self._rng = rng
        self._finding = trio.Lock()
        self.node: Node | None = None

    async def find(self) -> Node:
        """Find the coordinator, retrying until it is found.

        Raises:
            ApiError: the request was rejected, for example because the client is not authorized to
                use the group.
            AuthenticationError: every node rejected the client's credentials.
            trio.ClosedResourceError: the client is closed.
        """
        async with self._finding:
            failures = 0
            while (node := self.node) is None:
                try:
                    self.node = await self._find_once()
                except DisconnectedError as error:
                    LOGGER.debug("group %s: %s", self._settings.group_id, error)
                if self.node is None:
                    failures += 1
                    await trio.sleep(self._settings.retry.seconds(failures, self._rng))
            return node

    async def _find_once(self) -> Node | None:
        node = await until_any_ready(self.client)
        group_id = self._settings.group_id

        def body(version: int) -> Message:
            if version < _MANY_KEYS_VERSION:
                return FindCoordinatorRequest(key=group_id, key_type=_KEY_TYPE_GROUP)
            return FindCoordinatorRequest(key_type=_KEY_TYPE_GROUP, coordinator_keys=[group_id])

        response: FindCoordinatorResponse = await self._request(node, FindCoordinatorRequest, body)
        found = response.coordinators[0] if response.coordinators else response
        error = coordinator_error(found, f"group {group_id}")
        if error is not None:
            if not is_retriable(error):
                raise error
            LOGGER.debug("no coordinator of %s", error)
            return None
        LOGGER.debug("group %s: node %d is the coordinator", group_id, found.node_id)
        return Node(COORDINATOR_ID_BASE - found.node_id, found.host, found.port)

    async def request(
        self,
        request: type[Message],
        body: Body,
        *,
        version_max: int | None = None,
        timeout_seconds: float | None = None,
        is_apart: bool = False,
    ) -> Any:
        """Send a request to the coordinator, without retries, and wait for the response.

        Args:
            request: the class of the request.
            body: builds the request.
            version_max: the newest version that can carry the request; None for no limit.
            timeout_seconds: the time limit for the response; None for ``request.timeout.ms``.
            is_apart: whether to use the connection for other requests to that broker, since a
                JoinGroup or SyncGroup is in flight to the coordinator. A broker handles the
                requests of a connection one after the other, and holds these two for as long as a
                rebalance takes.

        Raises:
            DisconnectedError: no response was received. The next call looks up the coordinator
                again, unless this request was apart: to forget the coordinator would also end the
                JoinGroup or SyncGroup in flight, which fails by itself if the coordinator is lost.
            UnsupportedVersionError: the coordinator does not support the request.
            ApiError, AuthenticationError, trio.ClosedResourceError: see :meth:`find`.
        """
        node = self.node or await self.find()
        if is_apart and node.broker_id is not None:
            node = attrs.evolve(node, id=node.broker_id)
        try:
            return await self._request(node, request, body, version_max, timeout_seconds)
        except DisconnectedError as error:
            if not is_apart:
                self.forget(node, str(error))
            raise

    async def _request(
        self,
        node: Node,
        request: type[Message],
        body: Body,
        version_max: int | None = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        client = self.client
        if not client.ready(node):
            await client.until_ready(node)
        versions = client.versions(node)
        assert versions is not None
        version = versions.codec(api_key_of(request()), version_max=version_max).version
        response = PendingResponse()
        client.send(
            node, body(version), response, version_max=version, timeout_seconds=timeout_seconds
        )
        return await response.wait()

    def forget(self, node: Node | None, reason: str) -> None:
        """If this node is the coordinator, forget it and close the connection to it."""
        if node is None or node is not self.node:
            return
        LOGGER.info("group %s: lost coordinator %s: %s", self._settings.group_id, node, reason)
        self.node = None
        self.client.disconnect(node)

    def replace_connection(self) -> None:
        """Close the connection to the coordinator; the next request opens another at once.

        Requests in flight fail. As this client has closed the connection itself, there is no reason
        to wait for the reconnect backoff, which may be longer than a member has to leave its group.
        """
        if self.node is not None:
            self.client.close(self.node)
            # A different object, so that the failed requests do not forget the coordinator.
            self.node = attrs.evolve(self.node)
