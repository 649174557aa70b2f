"""Requests to the handlers, responses back to the processor that they came from.

(Kafka: RequestChannel.) One bounded queue carries the requests of all processors to the handlers;
each processor has a response queue of its own, which never grows longer than its channels, since a
channel has one request out at a time. Every request gets exactly one answer.

The queue is a deque and a parking lot, not a trio memory channel, for one reason: a memory
channel wakes one waiting handler per request, 3 to 4 µs each, where one handler can take all the
requests of a turn at 0.5 µs each. So handlers are woken one per turn of a processor, for as long as
requests wait: a handler that drains the queue is joined by another only when it is held up.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import trio

from ..errors import LocalProtocolError
from ..net.channel import Channel
from ..net.close_reason import CloseReason
from ..net.endpoint import Endpoint
from ..net.framing import Frame
from ..net.transmission import Send


class RequestSource(Protocol):
    """What is known here of a processor: the listener it serves, and how answers go back."""

    endpoint: Endpoint

    def enqueue_response(self, request: Request) -> None: ...

    def process_new_responses(self) -> None: ...

    def wakeup(self) -> None: ...


class NoOp:
    """No answer (a Produce with acks=0): the channel is unmuted at once."""

    __slots__ = ()


class CloseConnection:
    """Close the connection instead of an answer."""

    __slots__ = ("detail", "reason")

    def __init__(self, reason: CloseReason = CloseReason.CLOSE_RESPONSE, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail


Response = Send | NoOp | CloseConnection
"""What a request is answered with; a Send is one whole frame, its size prefix included."""

NO_OP = NoOp()


class Request:
    """One received frame and where its answer goes.

    Attributes:
        processor: the processor it came from.
        channel: the connection it came on; muted until the answer has left.
        payload: the frame without its size prefix.
        response: the answer, once there is one.
    """

    __slots__ = ("channel", "payload", "processor", "response")

    def __init__(self, processor: RequestSource, channel: Channel, payload: Frame) -> None:
        self.processor = processor
        self.channel = channel
        self.payload = payload
        self.response: Response | None = None

    def respond(self, response: Response) -> None:
        """Give the request its one answer, from any task, at any later time.

        Raises:
            LocalProtocolError: it has been given one already.
        """
        if self.response is not None:
            raise LocalProtocolError(f"a request of {self.channel.id} was answered twice")
        self.response = response
        self.processor.enqueue_response(self)

    def __repr__(self) -> str:
        return f"<Request of {self.channel.id}, {len(self.payload)} bytes>"


class RequestChannel:
    """The bounded queue between processors and handlers.

    Args:
        requests_max: how many requests may wait (``queued.max.requests``).
    """

    def __init__(self, requests_max: int) -> None:
        self.requests_max = requests_max
        self.requests: deque[Request] = deque()
        self._idle_handlers = trio.lowlevel.ParkingLot()
        self._blocked: dict[RequestSource, None] = {}
        self._answered: list[RequestSource] = []

    def __len__(self) -> int:
        return len(self.requests)

    def offer(self, request: Request) -> bool:
        """Queue a request; False when the queue is full (then see :meth:`wake_when_free`)."""
        if len(self.requests) >= self.requests_max:
            return False
        self.requests.append(request)
        return True

    def wake_handler(self) -> bool:
        """If requests wait, wake one idle handler for them; whether one was woken."""
        return bool(self.requests) and bool(self._idle_handlers.unpark())

    def wake_when_free(self, processor: RequestSource) -> None:
        """Wake a processor, once, when a handler has taken a request."""
        self._blocked[processor] = None

    def has_responses(self, processor: RequestSource) -> None:
        """Note that the response queue of a processor is not empty any more."""
        self._answered.append(processor)

    def send_responses(self) -> None:
        """Send what was answered so far, instead of leaving it to the processors' next turns.

        A handler calls this when it has drained the queue: the answers leave a pass of the
        scheduler earlier, 6 of the 45 µs that a lone request takes.
        """
        answered = self._answered
        while answered:
            answered.pop().process_new_responses()

    async def wait(self) -> None:
        """Wait, as an idle handler, for requests. Always a checkpoint."""
        if self.requests:
            await trio.lowlevel.checkpoint()
        else:
            await self._idle_handlers.park()

    def take(self) -> Request | None:
        """The oldest request, or None."""
        if not self.requests:
            return None
        request = self.requests.popleft()
        if self._blocked:
            self._wake_blocked()
        return request

    def _wake_blocked(self) -> None:
        """Wake every processor that waits for room; those that find none will wait again.

        Not one of them only: it may have found room by itself meanwhile, and with it would go the
        wake-up that another needs.
        """
        blocked, self._blocked = self._blocked, {}
        for processor in blocked:
            processor.wakeup()
