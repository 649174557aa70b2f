"""Any request of Kafka's protocol."""

from __future__ import annotations

from typing import Any

from ...protocol._wire import Message
from .._node import Node
from .calls._conversions import AdminCalls


class RequestCalls(AdminCalls):
    """Calls about the brokers that are asked, and requests as they are."""

    async def nodes(self) -> dict[int, Node]:
        """The brokers that are known, by id.

        Raises:
            CallTimedOutError: no broker could be asked in time.
            AuthenticationError, UnsupportedVersionError: the brokers cannot be asked.
        """
        return dict(await self._calls.once(self._calls.nodes.known))

    async def request(
        self, body: Message, *, broker_id: int | None = None, version_max: int | None = None
    ) -> Any:
        """Make any request of Kafka's protocol, once, and give its answer as it is.

        Args:
            body: of :mod:`trionet.protocol.messages`.
            broker_id: whom to ask; None for any broker.
            version_max: the newest version that the caller understands; None for all.

        Raises:
            ApiError: BROKER_NOT_AVAILABLE: there is no broker of this id.
            CallTimedOutError: no broker could be asked in time.
            TrionetError: as :meth:`.NetworkClient.request`.
        """
        nodes = self._calls.nodes

        async def find() -> Node:
            return await (nodes.any() if broker_id is None else nodes.broker(broker_id))

        node = await self._calls.once(find)
        return await self._calls.client.request(node, body, version_max=version_max)
