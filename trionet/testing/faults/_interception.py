"""Intercepts all requests to a broker, to record them and to apply the faults that match."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import attrs
import trio

from ...broker.api._call import Call
from ...broker.api._dispatch import Handle
from ...errors import LocalProtocolError
from ...protocol._wire import Message
from .._internals import BrokerInternals, NodeInternals
from .._seen_requests import Fault, SeenRequest, SeenRequests, seen
from ._exchange import DelayedExchange, Exchange
from ._fault_actions import Action

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

FOREVER: Final = math.inf


@attrs.define(eq=False)
class FaultRule:
    """A fault, with the action and timing that apply to matching requests.

    Attributes:
        fault: the fault as tests see it.
        action: the action to run for a matching request.
        skip: the number of matching requests still to skip.
        delay: how long to delay each matching request before the action, in seconds.
    """

    fault: Fault
    action: Action
    skip: int
    delay: float

    def applies_to(self, request: SeenRequest) -> bool:
        """Return whether the fault applies to a request; if it does, record the hit."""
        fault = self.fault
        if fault.is_over:
            return False
        try:
            is_match = fault.which.matches(request)
        except Exception as error:  # boundary: `when` is the test's; reported there
            fault.error = error
            return False
        if not is_match:
            return False
        if self.skip:
            self.skip -= 1
            return False
        fault.hits += 1
        request.faults = (*request.faults, fault)
        return True

    @property
    def is_holding(self) -> bool:
        """Whether requests may be held that proceed when the fault is removed."""
        fault = self.fault
        return self.delay == FOREVER and not fault.is_removed and fault.error is None

    @property
    def is_in_effect(self) -> bool:
        """Whether the fault applies to further requests, or holds some."""
        return self.is_holding or not self.fault.is_over

    async def act(self, exchange: Exchange) -> None:
        """Apply the fault to an intercepted call."""
        which = self.fault.which
        if not self.delay:
            await self.action.act(exchange, which)
            return
        await trio.lowlevel.checkpoint()
        if self.fault.is_removed:  # meanwhile; the call was not in the purgatory yet
            await self.action.act(exchange, which)
            return

        def proceed() -> None:
            exchange.start(lambda: self.action.act(exchange, which))

        DelayedExchange(exchange, proceed).hold(self.fault, self.delay)


def check_timing(times: int | None, skip: int, delay: float) -> None:
    """Validate a fault's timing arguments.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: a value is out of range.
    """
    for name, value, kinds, allowed in (
        ("times", 1 if times is None else times, int, "an integer of 1 or more, or None for all"),
        ("skip", skip, int, "an integer of 0 or more"),
        ("delay", delay, (int, float), "0 or more seconds"),
    ):
        if not isinstance(value, kinds) or isinstance(value, bool) or math.isnan(value):
            raise TypeError(f"invalid {name}={value!r}; expected {allowed}")
    if (times is not None and times < 1) or skip < 0 or delay < 0:
        raise ValueError(
            f"invalid times={times}, skip={skip} or delay={delay}: times must be 1 or more, or None"
            " for all; skip and delay must be 0 or more"
        )


# How many clients are known before those of closed connections are dropped.
CLIENTS_SWEPT_AT: Final = 1000


#: How many faults are remembered; more if they are all still in effect.
INJECTED_MAX: Final = 50


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
        injected: the last faults that were added, with their numbers, also those that are over.
            None is forgotten that is still in effect.
    """

    def __init__(self, internals: BrokerInternals) -> None:
        self.internals = internals
        self.seen: SeenRequests = SeenRequests()
        self.faults: list[FaultRule] = []
        self.clients: dict[str, str | None] = {}
        self.injected: list[tuple[int, FaultRule]] = []
        self._clients_max = CLIENTS_SWEPT_AT
        if any(node.apis.interceptor is not None for node in internals.nodes):
            raise LocalProtocolError(
                "this broker is already under control; call control() only once per broker"
            )
        for node in internals.nodes:
            node.apis.interceptor = partial(self._intercept, node)
            node.state.groups.on_change = internals.changed
        internals.cluster.group_store.on_end = internals.changed
        internals.cluster.transactions.on_change = internals.changed

    def add(self, rule: FaultRule) -> None:
        """Apply a fault from now on, and forget those that are done."""
        self.faults[:] = [each for each in self.faults if not each.fault.is_done]
        self.faults.append(rule)
        self.injected.append((self.injected[-1][0] + 1 if self.injected else 1, rule))
        if len(self.injected) > INJECTED_MAX:
            over = (place for place, (_, each) in enumerate(self.injected) if not each.is_in_effect)
            if (oldest := next(over, None)) is not None:
                del self.injected[oldest]

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
