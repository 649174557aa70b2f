"""The outcomes of requests, kept until the end of the poll.

**The problem.** A request has exactly one outcome, which has one of six causes: a response, a
response that cannot be decoded, a lost connection, a timeout, an unsupported version, or the end of
the client. Outcomes must be returned in order, and callbacks may call the client.

**The choice.** The code that ends a request calls :meth:`Outcomes.add`, which only appends.
Callbacks run after all events of a poll have been handled (:meth:`Outcomes.run_callbacks`), so they
never see an intermediate state.

**What was refused.** Immediate callbacks: a callback could send a request on a connection whose end
the same poll has reported but not yet handled. A future per request: producers and consumers need
no task per request, and would pay for an event per request.

**When to think again.** If polls return so many outcomes that decoding all responses delays the
first callback noticeably.
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
    """The outcomes of a client's requests whose callbacks have not run yet."""

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
        now: when the outcome became known, on the event loop's clock in seconds.
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
