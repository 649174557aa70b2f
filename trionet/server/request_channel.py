"""Requests to the handlers, responses back to the processor that they came from.

(Kafka: RequestChannel.) One bounded queue carries the requests of all processors to the handlers;
each processor has a response queue of its own, which never grows longer than its channels, since a
channel has one request out at a time. Every request gets exactly one answer.

The queue is a deque and a set of idle tasks, not a trio memory channel, for one reason: a memory
channel wakes one waiting handler per request, 3 to 4 µs each, where one handler can take all the
requests of a turn at 0.5 µs each. So handlers are woken one after the other, for as long as
requests wait: a handler that drains the queue is joined by another only when it is held up. And
not a ``trio.lowlevel.ParkingLot``, whose order among the idle nobody needs, at 6 µs a lone request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import trio
from trio.lowlevel import Task

from ..errors import LocalProtocolError
from ..metrics.request_times import RequestTimes, TimedRequest, now_ns
from ..net.channel import Channel
from ..net.close_reason import CloseReason
from ..net.endpoint import Endpoint
from ..net.framing import Frame
from ..net.memory_pool import MemoryLease
from ..net.principal import Principal
from ..net.transmission import Outgoing, Send
from .connection import Connection


class RequestSource(Protocol):
    """What is known here of a processor: the listener it serves, and how answers go back."""

    id: int
    endpoint: Endpoint

    def start_throttling(self, request: Request) -> None: ...

    def end_throttling(self, request: Request) -> None: ...

    def release_memory(self, lease: MemoryLease) -> None: ...

    def send_new_responses(self) -> None: ...

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


Response = Outgoing | NoOp | CloseConnection
"""What a request is answered with; a Send, or bytes, is one whole frame, its size included."""

NO_OP = NoOp()


class Request(TimedRequest):
    """One received frame, who sent it, and where its answer goes.

    Attributes:
        responses: where its answer goes: the response queue of its processor.
        channel: the connection it came on; muted until the answer has left.
        payload: the frame without its size prefix.
        response: the answer, once there is one.
        lease: its share of ``queued.max.request.bytes``, until it is given back.
        kind: what it asks for, as its handler knows it; None if it does not.
        client_id: what the client calls itself in it; None if it does not.
        error_code: the first error in its answer; 0 for none.
        is_left_out: whether it is not to be logged.
        is_answered: its answer has left, or it wanted none.
        throttle_ns: for how long its channel was throttled; -1 while it is.
    """

    __slots__ = (
        "channel",
        "client_id",
        "error_code",
        "is_answered",
        "is_left_out",
        "kind",
        "lease",
        "payload",
        "response",
        "responses",
        "throttle_ns",
    )

    def __init__(
        self,
        responses: ResponseQueue,
        channel: Channel,
        payload: Frame,
        times: RequestTimes,
        received_ns: int,
    ) -> None:
        self.responses = responses
        self.channel = channel
        self.payload = payload
        self.response: Response | None = None
        self.lease: MemoryLease | None = None
        self.kind: object = None
        self.client_id: str | None = None
        self.error_code = 0
        self.is_left_out = False
        self.is_answered = False
        self.throttle_ns = 0
        self.times = times
        self.request_bytes = len(payload)
        self.received_ns = received_ns
        self.taken_ns = received_ns
        self.handled_ns = 0
        self.answered_ns = 0
        self.picked_up_ns = 0
        self.sent_ns = 0

    @property
    def connection_id(self) -> str:
        """Names the connection, uniquely as long as the server knows it."""
        return self.channel.id

    @property
    def listener_name(self) -> str:
        return self.responses.processor.endpoint.listener_name

    @property
    def security_protocol(self) -> str:
        """``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``."""
        return self.responses.processor.endpoint.security_protocol

    @property
    def processor_id(self) -> int:
        return self.responses.processor.id

    @property
    def principal(self) -> Principal:
        """Who sent it; anonymous on a listener that asks nobody."""
        return self.channel.principal

    @property
    def peer_address(self) -> str:
        """The IP address of the peer."""
        connection: Connection = self.channel.attachment
        return connection.peer_host

    @property
    def arrived_at(self) -> float:
        """When the frame was complete, in seconds of ``time.perf_counter()``."""
        return self.received_ns / 1e9

    def respond(self, response: Response) -> None:
        """Give the request its one answer, from any task, at any later time.

        Raises:
            LocalProtocolError: it has been given one already.
            TypeError: this is none.
        """
        self.answer(response, now_ns())

    def answer(self, response: Response, at_ns: int) -> None:
        """As :meth:`respond`, for who knows what time it is, by ``perf_counter_ns``."""
        # Compiled, a check against a tuple of classes makes the tuple each time.
        if not isinstance(response, bytes) and not isinstance(
            response, (Send, NoOp, CloseConnection)
        ):
            raise TypeError(f"{response!r} is not a response")
        if self.response is not None:
            raise LocalProtocolError(f"a request of {self.channel.id} was answered twice")
        self.response = response
        self.answered_ns = at_ns
        self.responses.put(self)

    def release(self) -> None:
        """Let go of the payload before the answer is given: of its memory, and of its lease."""
        self.payload = b""
        self.return_lease()

    def return_lease(self) -> None:
        """Give back its share of the memory for requests; the payload stays with who holds it."""
        lease, self.lease = self.lease, None
        if lease is not None:
            self.responses.processor.release_memory(lease)

    def start_throttling(self) -> None:
        """Keep the channel muted beyond the answer, until :meth:`end_throttling` (KIP-219).

        Nothing happens if the connection is closed, which the caller cannot know.

        Raises:
            LocalProtocolError: the answer was sent already, or the channel is throttled.
        """
        self.responses.processor.start_throttling(self)

    def end_throttling(self) -> None:
        """The throttle is over; the channel is read again when the answer has been sent, too.

        Nothing happens if the connection is closed.

        Raises:
            LocalProtocolError: the channel is not throttled.
        """
        self.responses.processor.end_throttling(self)

    def __repr__(self) -> str:
        return f"<Request of {self.channel.id}, {len(self.payload)} bytes>"


class ResponseQueue:
    """The answered requests of one processor that it has not looked at yet.

    (Kafka: the responseQueue of a Processor.)

    Args:
        request_channel: told when it is not empty any more.
        processor: whose it is.

    Attributes:
        requests: in the order in which they were answered; the processor takes them all at once.
    """

    __slots__ = ("_is_closed", "_request_channel", "processor", "requests")

    def __init__(self, request_channel: RequestChannel, processor: RequestSource) -> None:
        self._request_channel = request_channel
        self.processor = processor
        self._is_closed = False
        self.requests: list[Request] = []

    def put(self, request: Request) -> None:
        """Add a request; its answer is sent in the processor's next turn at the latest."""
        if self._is_closed:
            return  # the server is stopping, and has closed the connection
        self.requests.append(request)
        if len(self.requests) == 1:  # for those behind it, all of this is done already
            self._request_channel.has_responses(self.processor)
            self.processor.wakeup()

    def close(self) -> None:
        """Drop what is in it, and what will be put into it."""
        self._is_closed = True
        self.requests.clear()


class RequestChannel:
    """The bounded queue between processors and handlers.

    Args:
        requests_max: how many requests may wait (``queued.max.requests``).
        ns_per_wakeup_max: for how long a handler that was woken goes on with the next request, in
            nanoseconds.
    """

    def __init__(self, requests_max: int, ns_per_wakeup_max: int = 2_000_000) -> None:
        self.requests_max = requests_max
        self.ns_per_wakeup_max = ns_per_wakeup_max
        self.requests: deque[Request] = deque()
        self._idle_handlers: dict[Task, None] = {}
        self._is_handler_coming = False
        self._blocked: dict[RequestSource, None] = {}
        self._answered: list[RequestSource] = []

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def room(self) -> int:
        """How many requests fit in now; at least 1, of which a processor learns that it is full."""
        return max(1, self.requests_max - len(self.requests))

    def offer(self, request: Request) -> bool:
        """Queue a request; False when the queue is full (then see :meth:`wake_when_free`)."""
        if len(self.requests) >= self.requests_max:
            return False
        self.requests.append(request)
        return True

    def has_lone(self, is_wanted: Callable[[Request], bool]) -> bool:
        """Whether one request waits, of a wanted kind, and an idle handler is not woken yet."""
        if len(self.requests) != 1 or self._is_handler_coming or not self._idle_handlers:
            return False
        return is_wanted(self.requests[0])

    def wake_handler(self) -> bool:
        """If requests wait, wake an idle handler for them; whether one is on its way."""
        if not self.requests:
            return False
        if not self._is_handler_coming and self._idle_handlers:
            self._is_handler_coming = True
            task, _ = self._idle_handlers.popitem()
            trio.lowlevel.reschedule(task)
        return self._is_handler_coming

    def wake_all_handlers(self) -> None:
        """Wake every idle handler; those that find nothing wait again."""
        tasks, self._idle_handlers = self._idle_handlers, {}
        for task in tasks:
            trio.lowlevel.reschedule(task)

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
            answered.pop().send_new_responses()

    def add_idle_handler(self, task: Task) -> None:
        """Reschedule a handler's task when there are requests for it; it calls the next then."""
        self._idle_handlers[task] = None

    def idle_handler_came(self) -> None:
        """The handler that was woken is here, and takes requests."""
        self._is_handler_coming = False

    def remove_idle_handler(self, task: Task) -> None:
        """Do not wake this handler: it was cancelled."""
        del self._idle_handlers[task]

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
