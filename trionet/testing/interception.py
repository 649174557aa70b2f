"""Every request of a broker passes here: it is remembered, and a fault may meet it."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..broker.apis import Handle
from ..broker.call import Call
from ..errors import LocalProtocolError
from ..protocol.wire import Message
from .exchange import Exchange
from .fault import Fault
from .inside import Inside, NodeInside
from .seen_requests import SeenRequests, seen


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
    """

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self.seen = SeenRequests()
        self.faults: list[Fault] = []
        if any(node.state.apis.interceptor is not None for node in inside.nodes):
            raise LocalProtocolError("this broker is under test already; once is enough")
        for node in inside.nodes:
            node.state.apis.interceptor = partial(self._intercept, node)
            node.state.groups.on_change = inside.changed

    async def _intercept(
        self, node: NodeInside, message: Message, call: Call, handle: Handle
    ) -> Any:
        request = seen(node, message, call)
        self.seen.add(request, len(call.request.payload))
        node.changes.unpark_all()
        exchange = Exchange(node, call, handle, request)
        for fault in self.faults:
            if fault.takes(request):
                await fault.act(exchange)
                return None
        await exchange.execute()
        return None  # it was answered, or will be
