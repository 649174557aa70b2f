"""The outcomes of requests, from the moment they are known until the end of the poll.

**The problem.** A request has exactly one outcome, and its outcome comes from one of six places:
its response, a response that does not decode, a lost connection, a timeout, a version that the node
lacks, the end of the client. Outcomes have to be handed out in order, and callbacks may call the
client again.

**The choice.** Whatever ends a request calls :meth:`Outcomes.add`, which only appends. Callbacks
run when everything of a poll has been handled (:meth:`Outcomes.run_callbacks`), so they never see
a state between two steps.

**What was refused.** Callbacks in the moment of the outcome: a callback that sends could be handled
before the disconnection that the same poll reported. A future per request: producers and consumers
need no task per request, and would pay for an event each.

**When to think again.** If polls bring so many outcomes that the first callback waits noticeably
for the last response to be decoded.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ...errors import TrionetError
from ..requests._in_flight import InFlightRequest
from ..requests._response import ClientResponse

logger = logging.getLogger("trionet.client")

Callback = Callable[[ClientResponse], None]


class Outcomes:
    """The outcomes of one client's requests whose callbacks have not run yet."""

    def __init__(self) -> None:
        self._completed: list[tuple[Callback | None, ClientResponse]] = []

    @property
    def is_empty(self) -> bool:
        return not self._completed

    def add(self, callback: Callback | None, response: ClientResponse) -> None:
        """Add the outcome of a request.

        Args:
            callback: the callback of the request; None if it has none.
            response: the outcome.
        """
        self._completed.append((callback, response))

    def run_callbacks(self) -> list[ClientResponse]:
        """Run the callbacks of completed requests, in order, and return the outcomes."""
        completed, self._completed = self._completed, []
        for callback, response in completed:
            if callback is None:
                continue
            try:
                callback(response)
            except Exception:  # boundary: one callback
                logger.exception("the callback of a request to node %d failed", response.node_id)
        return [response for _, response in completed]


def outcome_of(
    request: InFlightRequest, now: float, body: Any = None, error: TrionetError | None = None
) -> ClientResponse:
    """Return the outcome of a request that was sent.

    Args:
        request: the request.
        now: when its outcome was known, in seconds of the loop's clock.
        body: the body of the response; None if there is no response.
        error: why there is no response.
    """
    return ClientResponse(
        node_id=request.node_id,
        correlation_id=request.correlation_id,
        request=request.body,
        body=body,
        error=error,
        latency_seconds=now - request.sent_at,
    )
