"""The request queue and the response queues between processors and handlers.

(Kafka: RequestChannel.) One bounded queue carries the requests of all processors to the handlers.
Each processor has its own response queue. The queue holds at most one response per open channel,
because a channel has at most one request in progress, plus the responses to requests of closed
channels. Every request gets exactly one response.

The requests and responses are in lists. The trio memory channel of the requests only wakes
handlers. Its item is the *batch*, the list to which new requests are appended, but a woken handler
takes requests with :meth:`RequestChannel.take`. One item per request would cost one wake-up per
request, which takes several times as long as taking the next request. So a single handler is woken
for all requests of a turn. If that handler waits while requests are left, and the queue is not
empty in the next turn, the batch is sent again to wake a second handler. The bound counts requests
(queued.max.requests).

Two shortcuts keep the wake-ups from costing more than the requests. A handler that has emptied the
queue checks it a few more times, one scheduler pass apart; under load the next requests have
arrived by then. Also, a handler makes the processors send the responses that it collected. A
response that is given later or by another task unparks its processor, which sends the response in
its next turn unless a handler has made it send the response before.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable

import trio

from ..errors import LocalProtocolError
from ..metrics._request_times import RequestTimes, TimedRequest, now_ns
from ..net._channel import Channel
from ..net._channel_state import MuteEvent
from ..net._principal import Principal
from ..net._selector import Selector
from ..net.wire._close_reason import CloseReason
from ..net.wire._endpoint import Endpoint
from ..net.wire._framing import Frame
from ..net.wire._memory_pool import MemoryLease
from ..net.wire._transmission import Outgoing, Send
from ._connection import Connection
from ._recorder import Recording


class NoOp:
    """No response, as for a Produce with acks=0.

    The request is finished when its processor takes the NoOp from its queue; the channel is then
    unmuted, unless it is throttled.
    """

    __slots__ = ()


class CloseConnection:
    """Close the connection instead of sending a response."""

    __slots__ = ("detail", "reason")

    def __init__(self, reason: CloseReason = CloseReason.CLOSE_RESPONSE, detail: str = "") -> None:
        self.reason: CloseReason = reason
        self.detail: str = detail


Response = Outgoing | NoOp | CloseConnection
"""What a handler returns. A Send or bytes is one whole frame, including its size prefix."""

NO_OP = NoOp()
# The item that makes an idle handler check whether it is still wanted.
_NO_REQUESTS: list[Request] = []


class Request(TimedRequest):
    """A received request, with its connection, its timestamps and the queue for its response.

    Attributes:
        responses: the response queue of the processor that received the request.
        channel: the channel that the request arrived on; muted until the response has been sent.
        payload: the frame without its size prefix.
        response: the response; set once.
        lease: the request's share of ``queued.max.request.bytes``, until returned to the pool.
        kind: the request type, as determined by the handler; None if the handler sets none.
        client_id: the client id in the request, or None.
        error_code: the first error in the response; 0 for none.
        is_left_out: whether the request is left out of the request log.
        is_finished: whether the response has been sent, or no response is needed.
        throttle_ns: how long the channel was throttled; -1 while the throttle lasts.
        network_thread_ns: the time that the processor spent on reads and writes for the request,
            including TLS; set once the response is sent, if ``times_connections`` is set (Kafka:
            networkThreadTimeNanos).
    """

    def __init__(
        self,
        responses: ResponseQueue,
        channel: Channel,
        payload: Frame,
        times: RequestTimes,
        received_ns: int,
    ) -> None:
        self.responses: ResponseQueue = responses
        self.channel: Channel = channel
        self.payload = payload
        self.response: Response | None = None
        self.lease: MemoryLease | None = None
        self.kind: object = None
        self.client_id: str | None = None
        self.error_code: int = 0
        self.is_left_out: bool = False
        self.is_finished: bool = False
        self.throttle_ns: int = 0
        self.network_thread_ns: int = 0
        self.times = times
        self.request_bytes: int = len(payload)
        self.received_ns = received_ns
        self.taken_ns = received_ns
        self.handled_ns = 0
        self.responded_ns: int = 0
        self.picked_up_ns = 0
        self.sent_ns = 0

    @property
    def connection_id(self) -> str:
        """The id of the connection, unique for as long as the server keeps track of it."""
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
        """The principal of the sender; anonymous on a listener without authentication."""
        return self.channel.principal

    @property
    def peer_address(self) -> str:
        """The IP address of the peer."""
        connection: Connection = self.channel.attachment
        return connection.peer_host

    @property
    def arrived_at(self) -> float:
        """When the complete frame had been received, in seconds of ``time.perf_counter()``."""
        return self.received_ns / 1e9

    def respond(self, response: Response) -> None:
        """Set and queue the only response to the request; may be called from any task, at any time.

        Raises:
            LocalProtocolError: the request already has a response.
            TypeError: ``response`` is not a response.
        """
        self.set_response(response, now_ns())
        self.responses.put(self)

    def set_response(self, response: Response, at_ns: int) -> None:
        """Set the response and its time (``perf_counter_ns``), without queueing the request."""
        # Compiled, a check against a tuple of classes makes the tuple each time.
        if not isinstance(response, bytes) and not isinstance(
            response, (Send, NoOp, CloseConnection)
        ):
            raise TypeError(f"{response!r} is not a response")
        if self.response is not None:
            raise LocalProtocolError(f"{self!r} already has a response")
        self.response = response
        self.responded_ns = at_ns

    def release(self) -> None:
        """Free the payload and return its lease; may be called before the response is ready."""
        self.payload = b""
        self.return_lease()

    def return_lease(self) -> None:
        """Return the memory lease to the pool, although other code may still hold the payload."""
        lease, self.lease = self.lease, None
        if lease is not None and lease.pool is not None:
            lease.pool.release(lease, trio.current_time())

    def start_throttling(self) -> None:
        """Keep the channel muted after the response, until :meth:`end_throttling` (KIP-219).

        Does nothing if the connection is closed, since the caller may not know that it is.

        Raises:
            LocalProtocolError: the response has been sent, or the channel is already throttled.
        """
        channel = self.channel
        if not channel.is_open:
            return
        connection: Connection = channel.attachment
        if connection.request is not self:
            raise LocalProtocolError(f"{self!r} cannot be throttled: its response has been sent")
        channel.muting.handle(MuteEvent.THROTTLE_STARTED)
        connection.throttled_ns = now_ns()
        self.throttle_ns = -1

    def end_throttling(self) -> None:
        """End the throttle; the channel is read again after the response has also been sent.

        Does nothing to the channel if the connection is closed.

        Raises:
            LocalProtocolError: this request does not throttle the channel. A throttle of a later
                request goes on.
        """
        channel, responses = self.channel, self.responses
        # The channel's state alone would not do: it may be throttled because of a later request.
        if self.throttle_ns >= 0:
            if channel.is_open:
                raise LocalProtocolError(f"{self!r} is not throttled")
            return
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
    """The queue of responses that a processor has not sent yet.

    (Kafka: Processor.responseQueue.)

    Args:
        request_channel: the queue of requests for the handlers; notified of new responses.
        processor_id: the processor's number.
        endpoint: the listener that the processor serves.
        selector: the processor's selector; unparked when the queue becomes non-empty.
        recording: notified when a throttle ends.
        run_turn: :meth:`.Processor.run_turn`.
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        processor_id: int,
        endpoint: Endpoint,
        selector: Selector,
        recording: Recording,
        run_turn: Callable[[bool], None],
    ) -> None:
        self.processor_id = processor_id
        self.endpoint = endpoint
        self.selector = selector
        self.recording = recording
        self.run_turn = run_turn
        self._request_channel = request_channel
        self._batch: list[Request] = []
        self._is_sent = False
        self._is_closed = False
        self._outgoing, self._incoming = trio.open_memory_channel[list[Request]](1)

    def __len__(self) -> int:
        return len(self._batch)

    def has_work(self) -> bool:
        """Whether a response is queued, or an idle handler could take a queued request.

        If a request makes a handler wait, another handler is woken in the next turn for the
        requests after it.
        """
        return len(self._batch) > 0 or self._request_channel.has_taker

    def put(self, request: Request) -> None:
        """Queue a request that has its response, to be sent in the processor's next turn or sooner.

        The response is dropped if the processor has ended, which also closed the connection.
        """
        self.collect(request)
        if self._batch and not self._is_sent:
            self._is_sent = True
            self._outgoing.send_nowait(self._batch)

    def collect(self, request: Request) -> None:
        """Queue as :meth:`put` does, but leave the sending to the calling handler.

        The handler then calls :meth:`RequestChannel.send_responses`. The responses bypass the
        memory channel, since no task would be waiting to receive from it.
        """
        if self._is_closed:
            request.return_lease()
            return
        self._batch.append(request)
        if len(self._batch) == 1:  # later responses of the batch need no second notification
            self._request_channel.has_responses(self)
            self.selector.unpark()

    def take(self) -> list[Request]:
        """Remove and return all queued requests, in the order of their responses."""
        batch = self._batch
        if batch:
            self._batch = []
            if self._is_sent:
                self._is_sent = False
                self._incoming.receive_nowait()
        return batch

    def close(self) -> None:
        """Drop all queued responses and all responses that are added later."""
        self._is_closed = True
        for request in self._batch:
            request.return_lease()
        self._batch = []
        self._incoming.close()


class RequestChannel:
    """The bounded queue between processors and handlers.

    Args:
        requests_max: the maximum number of queued requests (``queued.max.requests``).
        ns_per_wakeup_max: for how long a woken handler keeps taking requests before it lets other
            tasks run, in nanoseconds.

    Attributes:
        idle_handlers: the number of handlers waiting to be woken; each handler counts itself.
        looking_handlers: the number of handlers that have emptied the queue and will check it
            again before they wait.
        incoming: the memory channel on which idle handlers wait.
    """

    def __init__(self, requests_max: int, ns_per_wakeup_max: int = 2_000_000) -> None:
        self.requests_max = requests_max
        self.ns_per_wakeup_max = ns_per_wakeup_max
        # A queue of two lists, compiled several times faster than a deque: requests are appended
        # to the batch, which becomes the stack that they are taken from once that is empty.
        self._batch: list[Request] = []
        self._taken_from: list[Request] = []
        self.incoming: trio.MemoryReceiveChannel[list[Request]]
        self._outgoing, self.incoming = trio.open_memory_channel[list[Request]](1)
        self._is_sent = False
        self.looking_handlers = 0
        self.idle_handlers = 0
        self._blocked: dict[Callable[[], None], None] = {}
        self._with_responses: list[ResponseQueue] = []

    def __len__(self) -> int:
        return len(self._batch) + len(self._taken_from)

    @property
    def requests(self) -> list[Request]:
        """The queued requests, oldest first; a copy."""
        return self._taken_from[::-1] + self._batch

    # Called by processors.

    @property
    def room(self) -> int:
        """The number of requests that still fit; at least 1, so that a full queue is noticed."""
        return max(1, self.requests_max - len(self))

    def offer(self, request: Request) -> bool:
        """Queue a request. Returns False if the queue is full; then see :meth:`wake_when_free`."""
        if len(self) >= self.requests_max:
            return False
        self._batch.append(request)
        return True

    def has_lone(self, is_wanted: Callable[[Request], bool]) -> bool:
        """Whether exactly one request waits, ``is_wanted`` is true for it, and a handler is idle.

        False if a handler has already been woken for the request.
        """
        if len(self) != 1 or self._is_sent or not self.idle_handlers:
            return False
        return is_wanted(self.requests[0])

    def call_handler(self) -> None:
        """Wake a handler if requests wait, unless one was already woken or is about to check."""
        if len(self) and not self._is_sent and not self.looking_handlers:
            self._is_sent = True
            self._outgoing.send_nowait(self._batch)

    @property
    def has_taker(self) -> bool:
        """Whether requests are waiting and a handler is idle."""
        return len(self) > 0 and self.idle_handlers > 0

    def wake_when_free(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once, the next time a handler takes a request."""
        self._blocked[wake] = None

    # Called by handlers.

    def received(self, batch: list[Request]) -> None:
        """Record that a handler was woken with an item of :attr:`incoming`.

        It will take requests with :meth:`take`, whatever the item is.
        """
        # The batch may be on its way to another handler, which was woken before and runs later.
        if batch is not _NO_REQUESTS:
            self._is_sent = False

    def wake_all_handlers(self) -> None:
        """Wake every idle handler, so that surplus handlers can end."""
        for _ in range(self._outgoing.statistics().tasks_waiting_receive):
            self._outgoing.send_nowait(_NO_REQUESTS)

    def take(self) -> Request | None:
        """Remove and return the oldest request, or None."""
        if not self._taken_from:
            if not self._batch:
                return None
            self._taken_from, self._batch = self._batch, self._taken_from
            self._taken_from.reverse()
        request = self._taken_from.pop()
        if self._blocked:
            # Wake all of them: a single wake-up could go to a processor that has found space by
            # itself in the meantime, and be lost to the one that needs it.
            blocked, self._blocked = self._blocked, {}
            for wake in blocked:
                wake()
        return request

    def has_responses(self, queue: ResponseQueue) -> None:
        """Record that a response queue has become non-empty."""
        self._with_responses.append(queue)

    def send_responses(self, may_poll: bool) -> None:
        """Make the processors send all queued responses now rather than in their next turns.

        A handler calls this after a number of requests, when its time is up, and when no request is
        left. This sends the responses one scheduler pass earlier. With ``may_poll``, the queue may
        contain new requests afterwards (see :meth:`.Processor.run_turn`).
        """
        queues = self._with_responses
        while queues:
            queues.pop().run_turn(may_poll)
