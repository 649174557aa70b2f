"""Every request of a broker passes here: it is remembered, and a fault may meet it."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ...broker.api._call import Call
from ...broker.api._dispatch import Handle
from ...errors import LocalProtocolError
from ...protocol._wire import Message
from ..internals._broker_internals import Inside, NodeInside
from ..requests._seen_requests import SeenRequests, seen
from ._exchange import Exchange
from ._fault import Fault

# With how many known clients those of closed connections are forgotten.
CLIENTS_SWEPT_AT: Final = 1000


class Interception:
    """What stands between the requests of a broker and its APIs.

    Args:
        inside: the broker; this is what intercepts the requests of its nodes from here on.

    Raises:
        LocalProtocolError: something else does already.

    Attributes:
        inside: the broker.
        seen: the requests that came.
        faults: those that requests may meet, in the order in which they were told.
        clients: what the client of each connection, by its id, has called itself last.
    """

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self.seen = SeenRequests()
        self.faults: list[Fault] = []
        self.clients: dict[str, str | None] = {}
        self._clients_max = CLIENTS_SWEPT_AT
        if any(node.apis.interceptor is not None for node in inside.nodes):
            raise LocalProtocolError("this broker is under test already; once is enough")
        for node in inside.nodes:
            node.apis.interceptor = partial(self._intercept, node)
            node.state.groups.on_change = inside.changed

    async def _intercept(
        self, node: NodeInside, message: Message, call: Call, handle: Handle
    ) -> Any:
        request = seen(node, message, call)
        self.seen.add(request, len(call.request.payload))
        node.changes.unpark_all()
        exchange = Exchange(node, call, handle, request)
        self._remember_client(call)
        await self._meet(exchange, self.faults.copy())
        return None  # it was answered, or will be

    def _remember_client(self, call: Call) -> None:
        connection = call.request.connection_id
        if connection not in self.clients and len(self.clients) >= self._clients_max:
            opened = {channel.id for node in self.inside.nodes for _, channel in node.channels()}
            for closed in self.clients.keys() - opened:
                del self.clients[closed]
            self._clients_max = max(CLIENTS_SWEPT_AT, 2 * len(self.clients))
        self.clients[connection] = call.client_id

    async def _meet(self, exchange: Exchange, faults: list[Fault]) -> None:
        for position, fault in enumerate(faults):
            if fault.takes(exchange.seen):
                exchange.go_on = partial(self._meet, exchange, faults[position + 1 :])
                await fault.act(exchange)
                return
        await exchange.execute()
