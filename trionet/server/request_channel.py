"""Requests to the handlers, responses back to the processor that they came from.

(Kafka: RequestChannel.) One bounded queue carries the requests of all processors to the handlers;
each processor has a response queue of its own, which never grows longer than its channels, since a
channel has one request out at a time. Every request gets exactly one response.

Both directions are trio memory channels, and what travels is a *batch*: a list that grows as long
as it is not empty again. An item per request would cost a wake-up each, 3 to 4 µs, where a handler
takes the next request of a batch in 0.5 µs. So one handler is woken for all requests of a turn, and
another only when that one is held up with some of them left: a batch that still waits is sent again
in the next turn. The bound counts requests, not batches (queued.max.requests).

Two ways past the channels keep the wake-ups from costing more than the requests. A handler that has
emptied its batch looks into it a few times more, a pass of the scheduler apart, and under load the
next requests are there. And a handler has the responses that it collected sent itself; those that
come from elsewhere, later, go through the channel of their processor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from ..errors import LocalProtocolError
from ..metrics.request_times import RequestTimes, TimedRequest, now_ns
from ..net.channel import Channel
from ..net.close_reason import CloseReason
from ..net.endpoint import Endpoint
from ..net.framing import Frame
from ..net.memory_pool import MemoryLease
from ..net.mute_state import MuteEvent
from ..net.principal import Principal
from ..net.selector import Selector
from ..net.transmission import Outgoing, Send
from .connection import Connection
from .recorder import Recording


class NoOp:
    """No response (a Produce with acks=0): the channel is unmuted at once."""

    __slots__ = ()


class CloseConnection:
    """Close the connection instead of a response."""

    __slots__ = ("detail", "reason")

    def __init__(self, reason: CloseReason = CloseReason.CLOSE_RESPONSE, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail


Response = Outgoing | NoOp | CloseConnection
"""What a handler gives for a request; a Send, or bytes, is one whole frame, its size included."""

NO_OP = NoOp()


class Request(TimedRequest):
    """One received frame, its sender, and where its response goes.

    Attributes:
        responses: the response queue of its processor.
        channel: the connection it came on; muted until the response has left.
        payload: the frame without its size prefix.
        response: set once.
        lease: its share of ``queued.max.request.bytes``, until it is given back.
        kind: what it asks for, as its handler knows it; None if it does not.
        client_id: what the client calls itself in it; None if it does not.
        error_code: the first error in its response; 0 for none.
        is_left_out: whether it is not to be logged.
        is_answered: its response has left, or it wanted none.
        throttle_ns: for how long its channel was throttled; -1 while it is.
        network_thread_ns: for how long its processor read and wrote for it, TLS included; set when
            its response has left, if ``times_connections`` is (Kafka: networkThreadTimeNanos).
    """

    __slots__ = (
        "channel",
        "client_id",
        "error_code",
        "is_answered",
        "is_left_out",
        "kind",
        "lease",
        "network_thread_ns",
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
        self.network_thread_ns = 0
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
        return self.responses.endpoint.listener_name

    @property
    def security_protocol(self) -> str:
        """``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``."""
        return self.responses.endpoint.security_protocol

    @property
    def processor_id(self) -> int:
        return self.responses.processor_id

    @property
    def principal(self) -> Principal:
        """Its sender; anonymous on a listener without authentication."""
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
        """Give the request its one response, from any task, at any later time.

        Raises:
            LocalProtocolError: it has been given one already.
            TypeError: this is none.
        """
        self.set_response(response, now_ns())
        self.responses.put(self)

    def set_response(self, response: Response, at_ns: int) -> None:
        """Keep its response, given at this time by ``perf_counter_ns``; it is queued after this."""
        # Compiled, a check against a tuple of classes makes the tuple each time.
        if not isinstance(response, bytes) and not isinstance(
            response, (Send, NoOp, CloseConnection)
        ):
            raise TypeError(f"{response!r} is not a response")
        if self.response is not None:
            raise LocalProtocolError(f"a request of {self.channel.id} was answered twice")
        self.response = response
        self.answered_ns = at_ns

    def release(self) -> None:
        """Let go of the payload before there is a response: of its memory, and of its lease."""
        self.payload = b""
        self.return_lease()

    def return_lease(self) -> None:
        """Give back its share of the memory for requests; the payload stays where it is used."""
        lease, self.lease = self.lease, None
        if lease is not None and lease.pool is not None:
            lease.pool.release(lease, trio.current_time())

    def start_throttling(self) -> None:
        """Keep the channel muted beyond the response, until :meth:`end_throttling` (KIP-219).

        Nothing happens if the connection is closed, which the caller cannot know.

        Raises:
            LocalProtocolError: the response was sent already, or the channel is throttled.
        """
        channel = self.channel
        if not channel.is_open:
            return
        connection: Connection = channel.attachment
        if connection.request is not self:
            raise LocalProtocolError(f"{self!r} is answered already; nothing to be throttled")
        channel.muting.handle(MuteEvent.THROTTLE_STARTED)
        connection.throttled_ns = now_ns()
        self.throttle_ns = -1

    def end_throttling(self) -> None:
        """The throttle is over; the channel is read again when the response has been sent, too.

        Nothing happens if the connection is closed.

        Raises:
            LocalProtocolError: the channel is not throttled.
        """
        channel, responses = self.channel, self.responses
        if self.throttle_ns < 0:
            connection: Connection = channel.attachment
            self.throttle_ns = now_ns() - connection.throttled_ns
            responses.recording.throttle_ended(self)
        if channel.is_open:
            channel.muting.handle(MuteEvent.THROTTLE_ENDED)
            self.times.throttled(self.throttle_ns)
            responses.selector.unmute(channel)
            responses.selector.wakeup()

    def __repr__(self) -> str:
        return f"<Request of {self.channel.id}, {len(self.payload)} bytes>"


class ResponseQueue:
    """The responses of one processor that it has not looked at yet, and where they come from.

    (Kafka: Processor.responseQueue.)

    Args:
        request_channel: the handlers' side of it.
        processor_id: number of the processor.
        endpoint: the listener that it serves.
        selector: the processor's; woken when the queue is not empty any more.
        recording: notified of throttles that end.
        send: has the processor send what is in the queue, now.
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        processor_id: int,
        endpoint: Endpoint,
        selector: Selector,
        recording: Recording,
        send: Callable[[], None],
    ) -> None:
        self.processor_id = processor_id
        self.endpoint = endpoint
        self.selector = selector
        self.recording = recording
        self.send = send
        self._request_channel = request_channel
        self._batch: list[Request] = []
        self._is_sent = False
        self._is_closed = False
        self._outgoing, self._incoming = trio.open_memory_channel[list[Request]](1)

    def __len__(self) -> int:
        return len(self._batch)

    def put(self, request: Request) -> None:
        """Add a request with its response, which leaves in the processor's next turn at the latest.

        It is dropped if the processor has ended, and has closed the connection.
        """
        self.collect(request)
        if self._batch and not self._is_sent:
            self._is_sent = True
            self._outgoing.send_nowait(self._batch)

    def collect(self, request: Request) -> None:
        """As :meth:`put`, for a handler that has the queue sent when it has drained the requests.

        Such a batch is not sent through the memory channel, of which nothing would wait at the
        other end: that would cost a twentieth of what a lone request takes.
        """
        if self._is_closed:
            request.return_lease()
            return
        self._batch.append(request)
        if len(self._batch) == 1:  # for those behind it, all of this is done already
            self._request_channel.has_responses(self)
            self.selector.unpark()

    def take(self) -> list[Request]:
        """Take all of them, in the order in which they were given."""
        batch = self._batch
        if batch:
            self._batch = []
            if self._is_sent:
                self._is_sent = False
                self._incoming.receive_nowait()
        return batch

    def close(self) -> None:
        """Drop what is in it, and what will be put into it."""
        self._is_closed = True
        self._batch = []
        self._incoming.close()


class RequestChannel:
    """The bounded queue between processors and handlers.

    Args:
        requests_max: how many requests may wait (``queued.max.requests``).
        ns_per_wakeup_max: for how long a handler that was woken goes on with the next request, in
            nanoseconds.

    Attributes:
        idle_handlers: how many handlers wait for a batch; each of them counts itself.
        looking_handlers: how many have emptied the batch, and look again before they wait.
        incoming: where they wait.
        requests: those that wait, the oldest first. This batch is what is sent to the handlers.
    """

    def __init__(self, requests_max: int, ns_per_wakeup_max: int = 2_000_000) -> None:
        self.requests_max = requests_max
        self.ns_per_wakeup_max = ns_per_wakeup_max
        self.requests: deque[Request] = deque()
        self._outgoing, self.incoming = trio.open_memory_channel[deque[Request]](1)
        self._is_sent = False
        self.looking_handlers = 0
        self.idle_handlers = 0
        self._blocked: dict[Callable[[], None], None] = {}
        self._answered: list[ResponseQueue] = []

    def __len__(self) -> int:
        return len(self.requests)

    # The processors' side.

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
        """Whether one request waits, of a wanted kind, and a handler is free that is not woken."""
        if len(self.requests) != 1 or self._is_sent or not self.idle_handlers:
            return False
        return is_wanted(self.requests[0])

    def call_handler(self) -> None:
        """Send the batch to the handlers, unless it is on its way or one is about to look at it."""
        if self.requests and not self._is_sent and not self.looking_handlers:
            self._is_sent = True
            self._outgoing.send_nowait(self.requests)

    @property
    def has_taker(self) -> bool:
        """Whether requests wait, and a handler is free for them."""
        return bool(self.requests) and self.idle_handlers > 0

    def wake_when_free(self, wake: Callable[[], None]) -> None:
        """Call ``wake``, once, when a handler has taken a request."""
        self._blocked[wake] = None

    # The handlers' side.

    def received(self) -> None:
        """Note that a handler has the batch, and will empty it with :meth:`take`."""
        self._is_sent = False

    def wake_all_handlers(self) -> None:
        """Wake every idle handler, to find out whether it is still wanted."""
        for _ in range(self._outgoing.statistics().tasks_waiting_receive):
            self._outgoing.send_nowait(deque())

    def take(self) -> Request | None:
        """The oldest request, or None."""
        if not self.requests:
            return None
        request = self.requests.popleft()
        if self._blocked:
            # All of them: one may have found room by itself meanwhile, and with it would go the
            # wake-up that another needs.
            blocked, self._blocked = self._blocked, {}
            for wake in blocked:
                wake()
        return request

    def has_responses(self, queue: ResponseQueue) -> None:
        """Note that a response queue is not empty any more."""
        self._answered.append(queue)

    def send_responses(self) -> None:
        """Have the processors send what they were given so far, and not in their next turns only.

        A handler calls this when it has drained the queue: the responses leave a pass of the
        scheduler earlier, 6 of the 45 µs that a lone request takes.
        """
        answered = self._answered
        while answered:
            answered.pop().send()
