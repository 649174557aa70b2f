"""Intercepts all requests to a broker, to record them and to apply faults."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ...broker.api._call import Call
from ...broker.api._dispatch import Handle
from ...errors import LocalProtocolError
from ...protocol._wire import Message
from ..internals._broker_internals import BrokerInternals, NodeInternals
from ..requests._seen_requests import SeenRequests, seen
from ._exchange import Exchange
from ._fault_rule import FaultRule

# How many clients are known before those of closed connections are dropped.
CLIENTS_SWEPT_AT: Final = 1000


class Interception:
    """Intercepts requests on their way to a broker's APIs.

    Args:
        internals: the broker, whose requests are intercepted from now on.

    Raises:
        LocalProtocolError: the broker's requests are already intercepted.

    Attributes:
        internals: the broker.
        seen: the requests received.
        faults: the faults, in the order in which they were added.
        clients: the most recent client id on each connection, keyed by connection id.
    """

    def __init__(self, internals: BrokerInternals) -> None:
        self.internals = internals
        self.seen: SeenRequests = SeenRequests()
        self.faults: list[FaultRule] = []
        self.clients: dict[str, str | None] = {}
        self._clients_max = CLIENTS_SWEPT_AT
        if any(node.apis.interceptor is not None for node in internals.nodes):
            raise LocalProtocolError(
                "this broker is already under control; call control() only once per broker"
            )
        for node in internals.nodes:
            node.apis.interceptor = partial(self._intercept, node)
            node.state.groups.on_change = internals.changed

    async def _intercept(
        self, node: NodeInternals, message: Message, call: Call, handle: Handle
    ) -> Any:
        request = seen(node, message, call)
        self.seen.add(request, len(call.request.payload))
        node.changes.unpark_all()
        exchange = Exchange(node, call, handle, request)
        self._record_client(call)
        await self._apply(exchange, self.faults.copy())
        return None  # the response was sent, or will be

    def _record_client(self, call: Call) -> None:
        connection = call.request.connection_id
        if connection not in self.clients and len(self.clients) >= self._clients_max:
            opened = {channel.id for node in self.internals.nodes for _, channel in node.channels()}
            for closed in self.clients.keys() - opened:
                del self.clients[closed]
            self._clients_max = max(CLIENTS_SWEPT_AT, 2 * len(self.clients))
        self.clients[connection] = call.client_id

    async def _apply(self, exchange: Exchange, faults: list[FaultRule]) -> None:
        for position, rule in enumerate(faults):
            if rule.applies_to(exchange.seen):
                exchange.proceed = partial(self._apply, exchange, faults[position + 1 :])
                await rule.act(exchange)
                return
        await exchange.execute()
