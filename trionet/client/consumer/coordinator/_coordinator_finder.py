"""Where a group's coordinator is (Kafka: AbstractCoordinator.lookupCoordinator)."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any, Final

import trio

from ....errors import DisconnectedError
from ....protocol._request_keys import api_key_of
from ....protocol._wire import Message
from ....protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ..._api_errors import api_error, is_retriable
from ..._node import COORDINATOR_ID_BASE, Node
from ...network._any_node import until_any_ready
from ...network._kafka_client import KafkaClient
from ...requests._pending_response import AwaitedAnswer
from ._group_settings import GroupSettings

LOGGER: Final = logging.getLogger(__name__)

_KEY_TYPE_GROUP: Final = 0
_MANY_KEYS_VERSION: Final = 4

Body = Callable[[int], Message]
"""A request as a version of its API wants it."""


class CoordinatorFinder:
    """Knows the coordinator of one group, and asks it.

    Args:
        client: somebody polls it.
        settings: of the group.
        chance: what blurs waits.

    Attributes:
        node: the coordinator, as far as that is known.
    """

    def __init__(self, client: KafkaClient, settings: GroupSettings, chance: random.Random) -> None:
        self._client = client
        self._settings = settings
        self._chance = chance
        self._finding = trio.Lock()
        self.node: Node | None = None

    def connection_problem(self) -> str:
        """See :meth:`.NetworkClient.connection_problem`."""
        return self._client.connection_problem()

    async def find(self) -> Node:
        """The coordinator; looked for until it is found.

        Raises:
            ApiError: this client may not use the group.
            AuthenticationError: it is not let in anywhere.
            trio.ClosedResourceError: the client is closed.
        """
        async with self._finding:
            failures = 0
            while (node := self.node) is None:
                try:
                    self.node = await self._ask_anybody()
                except DisconnectedError as error:
                    LOGGER.debug("group %s: %s", self._settings.group_id, error)
                if self.node is None:
                    failures += 1
                    await trio.sleep(self._settings.retry.seconds(failures, self._chance))
            return node

    async def _ask_anybody(self) -> Node | None:
        anybody = await until_any_ready(self._client)
        group_id = self._settings.group_id

        def body(version: int) -> Message:
            if version < _MANY_KEYS_VERSION:
                return FindCoordinatorRequest(key=group_id, key_type=_KEY_TYPE_GROUP)
            return FindCoordinatorRequest(key_type=_KEY_TYPE_GROUP, coordinator_keys=[group_id])

        answer: FindCoordinatorResponse = await self._request(anybody, FindCoordinatorRequest, body)
        found = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code:
            error = api_error(found.error_code, f"group {group_id}", found.error_message)
            if not is_retriable(error):
                raise error
            return None
        LOGGER.debug("group %s: node %d is the coordinator", group_id, found.node_id)
        return Node(COORDINATOR_ID_BASE - found.node_id, found.host, found.port)

    async def ask(
        self,
        request: type[Message],
        body: Body,
        *,
        version_max: int | None = None,
        seconds_max: float | None = None,
    ) -> Any:
        """Ask the coordinator, when it is found.

        Args:
            request: the class of the request.
            body: makes it.
            version_max: the newest version that can carry it; None for all.
            seconds_max: how long the answer may take, in place of ``request.timeout.ms``.

        Raises:
            DisconnectedError: there was no answer; the coordinator is not known any more.
            UnsupportedVersionError: it does not serve that.
            ApiError, AuthenticationError, trio.ClosedResourceError: as :meth:`find`.
        """
        node = self.node or await self.find()
        try:
            return await self._request(node, request, body, version_max, seconds_max)
        except DisconnectedError as error:
            self.forget(node, str(error))
            raise

    async def _request(
        self,
        node: Node,
        request: type[Message],
        body: Body,
        version_max: int | None = None,
        seconds_max: float | None = None,
    ) -> Any:
        client = self._client
        if not client.ready(node):
            await client.until_ready(node)
        versions = client.versions(node)
        assert versions is not None
        version = versions.codec(api_key_of(request()), version_max=version_max).version
        answer = AwaitedAnswer()
        client.send(node, body(version), answer, version_max=version, seconds_max=seconds_max)
        return await answer.wait()

    def forget(self, node: Node | None, reason: str) -> None:
        """This node is not the coordinator, or cannot be reached: look for it anew."""
        if node is None or node is not self.node:
            return
        LOGGER.info("group %s: coordinator %s is lost: %s", self._settings.group_id, node, reason)
        self.node = None
        self._client.disconnect(node)

    def drop_connection(self) -> None:
        """End the connection to the coordinator, and what waits in it; the node stays known."""
        if self.node is not None:
            self._client.disconnect(self.node)
