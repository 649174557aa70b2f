"""The faults of a broker under test for the metrics listener, and what clients do about them.

The dashboard shows them, injects faults and removes them. This adds a list and two actions to the
broker's own; the broker knows nothing of faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TypeVar

from ...server.metrics._snapshot_sections import Row, Section, SectionPage
from .._internals import InLoop
from .._seen_requests import Fault
from ._faults import Faults
from ._interception import FaultRule, Interception
from ._reactions import Timeline, reaction
from ._spoken_faults import inject

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

T = TypeVar("T")

#: How many of the last requests are searched for those that faults were applied to.
REQUESTS_MAX = 2_000
#: How many requests are reported of each fault.
EVENTS_MAX = 20


class FaultSection:
    """The faults that were injected, with the requests that they were applied to.

    Args:
        interception: applies the faults.
        in_loop: calls a function in the brokers' loop; for the faults that are injected here, which
            tests may remove.
    """

    def __init__(self, interception: Interception, in_loop: InLoop) -> None:
        self._interception = interception
        self._faults = Faults(interception, in_loop, is_inside=True)

    def register(self) -> None:
        """Add the list and the actions to those of all nodes."""
        for node in self._interception.internals.nodes:
            node.state.streams["faults"] = self.section
            node.state.orders["/faults/inject"] = self.inject
            node.state.orders["/faults/remove"] = self.remove

    def section(self, parameters: Mapping[str, str]) -> Section:  # noqa: ARG002 - all of them
        """Return the section of the faults."""
        return self._page

    def inject(self, parameters: Mapping[str, str]) -> object:
        """Add the fault that the parameters describe; see :func:`._spoken_faults.inject`.

        Raises:
            Refused: a parameter is not allowed.
        """
        fault = _allowed(lambda: inject(self._faults, parameters))
        return {"injected": str(fault)}

    def remove(self, parameters: Mapping[str, str]) -> object:
        """Remove the fault whose ``number`` is given, and proceed with what it holds.

        Raises:
            Refused: there is no such fault.
        """
        number = parameters.get("number", "")
        fault = _allowed(lambda: self._find(number))
        fault.remove_now()
        return {"removed": str(fault)}

    def _find(self, number: str) -> Fault:
        for each, rule in self._interception.injected:
            if str(each) == number:
                return rule.fault
        raise ValueError(f"there is no fault number {number!r}")

    def _page(self, count_max: int, before: int | None) -> SectionPage:
        injected = list(self._interception.injected)
        seen = self._interception.seen
        timeline = Timeline(seen.since(seen.total - REQUESTS_MAX))
        shown = [each for each in injected if before is None or each[0] < before][-count_max:]
        opened = {
            channel.id
            for node in self._interception.internals.nodes
            for _, channel in node.channels()
        }
        rows = [_row(number, rule, timeline, opened) for number, rule in reversed(shown)]
        return SectionPage(len(injected), rows)


def _row(number: int, rule: FaultRule, timeline: Timeline, opened: set[str]) -> Row:
    fault = rule.fault
    hit = timeline.of_faults.get(fault, [])[-EVENTS_MAX:]
    return {
        "number": number,
        "which": str(fault.which),
        "action": fault.action,
        "state": _state(rule),
        "hits": fault.hits,
        "times": fault.times,
        "requests": [
            {
                "time": request.time_ms / 1000,
                "api": request.api,
                "client_id": request.client_id,
                "connection": request.connection,
                "errors": request.errors,
                "reaction": reaction(request, timeline.after(request), opened),
            }
            for request in reversed(hit)
        ],
    }


def _state(rule: FaultRule) -> str:
    fault = rule.fault
    if fault.error is not None:
        return f"failed: {fault.error!r}"
    if fault.is_removed:
        return "removed"
    if fault.is_over and rule.is_holding:
        return "holding"
    return "over" if fault.is_over else "armed"


def _allowed(call: Callable[[], T]) -> T:
    """Return what a function returns, or refuse with its error."""
    # Imported here, since it needs h11, which brokers in most tests do not.
    from ...server.metrics._http_exchange import Refused

    try:
        return call()
    except (ValueError, TypeError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from error
