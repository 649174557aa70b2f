"""Applies a fault to requests: decides whether a request matches, and runs the fault's action."""

from __future__ import annotations

import math
from typing import Any, Final

import attrs
import trio

from ..requests._seen_requests import Fault, SeenRequest
from ._exchange import DelayedExchange, Exchange
from ._fault_actions import Action

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

        DelayedExchange.add(exchange, self.fault, proceed, self.delay)


def check_timing(times: int | None, skip: int, delay: float) -> None:
    """Validate a fault's timing arguments.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: a value is out of range.
    """
    _check_number("times", times, int, "an integer of 1 or more, or None for all", is_optional=True)
    _check_number("skip", skip, int, "an integer of 0 or more")
    _check_number("delay", delay, (int, float), "0 or more seconds")
    if (times is not None and times < 1) or skip < 0 or delay < 0:
        raise ValueError(
            f"invalid times={times}, skip={skip} or delay={delay}: times must be 1 or more, or None"
            " for all; skip and delay must be 0 or more"
        )


def _check_number(
    name: str,
    value: Any,
    kinds: type[int] | tuple[type[int], type[float]],
    allowed: str,
    *,
    is_optional: bool = False,
) -> None:
    is_one = isinstance(value, kinds) and not isinstance(value, bool) and not math.isnan(value)
    if not is_one and not (is_optional and value is None):
        raise TypeError(f"invalid {name}={value!r}; expected {allowed}")
