"""The outcomes of requests: responses or errors, kept until the end of the poll.

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

from collections.abc import Callable
from typing import Any

import trio

from ..._util._logging import get_logger
from ..._util._raising import again
from ...errors import TrionetError

logger = get_logger("trionet.client")


class ClientResponse:
    """The response to a request, or the error in its place, as returned by a poll.

    Args:
        node_id: the id of the node to which the request was sent.
        correlation_id: the request's correlation id.
        request: the body of the request.
        body: the body of the response; None if there is an ``error``, or if the request has no
            response (Produce with ``acks=0``).
        error: why there is no response: :class:`.UnsupportedVersionError` if no suitable version of
            the API is supported by both sides, :class:`.DisconnectedError` if the connection was
            lost, :class:`.RequestTimedOutError` if no response arrived in time,
            :class:`.WireFormatError` if the response could not be decoded,
            :class:`.ResponseTooLargeError` if it exceeded ``receive.message.max.bytes``.
        latency_seconds: the time from sending the request to the response or error.
    """

    def __init__(
        self,
        *,
        node_id: int,
        correlation_id: int,
        request: Any,
        body: Any = None,
        error: TrionetError | None = None,
        latency_seconds: float = 0.0,
    ) -> None:
        self.node_id = node_id
        self.correlation_id = correlation_id
        self.request = request
        self.body = body
        self.error = error
        self.latency_seconds = latency_seconds

    def __repr__(self) -> str:
        outcome = self.body if self.error is None else self.error
        return f"<ClientResponse {self.correlation_id} of node {self.node_id}: {outcome!r}>"


class PendingResponse:
    """A callback that lets a task wait for the response to a request."""

    __slots__ = ("_body", "_ended", "_error")

    def __init__(self) -> None:
        self._ended = trio.Event()
        self._error: TrionetError | None = None
        self._body: Any = None

    def __call__(self, response: ClientResponse) -> None:
        self._body, self._error = response.body, response.error
        self._ended.set()

    def fail(self, error: TrionetError) -> None:
        """Make :meth:`wait` raise an error, since the callback will never be called."""
        self._error = error
        self._ended.set()

    async def wait(self) -> Any:
        """Wait for the response and return its body.

        Raises:
            TrionetError: there is no response; see :class:`.ClientResponse`.
        """
        await self._ended.wait()
        if self._error is not None:
            raise again(self._error)  # several requests may share this error object
        return self._body


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
