"""Requests that no other admin call sends."""

from __future__ import annotations

from typing import Any

from ...protocol._wire import Message
from .._node import Node
from .calls._calls import AdminCalls


class RequestCalls(AdminCalls):
    """The known brokers, and arbitrary requests."""

    async def nodes(self) -> dict[int, Node]:
        """Return the known brokers by id.

        Raises:
            CallTimedOutError: no broker could be reached in time.
            AuthenticationError, UnsupportedVersionError: the brokers rejected the client.
        """
        return dict(await self._calls.retry(self._calls.nodes.known))

    async def request(
        self, body: Message, *, broker_id: int | None = None, version_max: int | None = None
    ) -> Any:
        """Send any request of Kafka's protocol, once, and return its response unchecked.

        Args:
            body: a request from :mod:`trionet.protocol.messages`.
            broker_id: the broker; None for any.
            version_max: the newest version that the caller understands; None for no limit.

        Raises:
            ApiError: BROKER_NOT_AVAILABLE if there is no broker with this id.
            CallTimedOutError: no broker could be reached in time.
            TrionetError: as for :meth:`.NetworkClient.request`.
        """
        nodes = self._calls.nodes

        async def find() -> Node:
            return await (nodes.any() if broker_id is None else nodes.broker(broker_id))

        node = await self._calls.retry(find)
        return await self._calls.client.request(node, body, version_max=version_max)
