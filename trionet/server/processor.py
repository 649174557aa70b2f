"""One network loop: its connections, their receives and their responses, in six steps.

(Kafka: SocketServer.Processor.) A turn is: configure new connections, process new responses, poll,
completed receives, completed sends, disconnected. One request of a channel is out at a time: a
receive is handed over, the channel is muted, and it is unmuted when its Send is complete, or at
once for a no-op. Any error in one channel's step closes that channel only; only cancellation
leaves the loop.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter, deque

import trio

from ..errors import LocalProtocolError
from ..net.channel import Channel
from ..net.close_reason import CloseReason
from ..net.endpoint import ConnectionId, Endpoint
from ..net.framing import Frame
from ..net.readiness import ReadinessKind, open_readiness
from ..net.selector import PollResult, Selector
from ..net.transmission import Send
from ..net.transport import PlaintextTransport
from .request_channel import CloseConnection, NoOp, Request, RequestChannel, Response

# Accepted connections that may wait for a processor; when all are full the acceptor waits
# (KIP-402).
CONNECTION_QUEUE_SIZE = 20
_INDEX_MAX = 2**31 - 1
# What queueing a connection raises when the processor has ended.
_ENDED = (trio.ClosedResourceError, trio.BrokenResourceError)


class Processor:
    """A selector and the loop that drives it.

    Args:
        id: number of the processor, part of connection ids.
        endpoint: the listener whose connections it serves.
        request_channel: where receives go.
        frame_bytes_max: ``socket.request.max.bytes``.
        log: where the server's lines go, with its prefix.
        readiness_kind: see :func:`trionet.net.readiness.open_readiness`.
    """

    def __init__(
        self,
        id: int,
        endpoint: Endpoint,
        request_channel: RequestChannel,
        frame_bytes_max: int,
        log: logging.LoggerAdapter[logging.Logger],
        readiness_kind: ReadinessKind | None = None,
    ) -> None:
        self.id = id
        self.endpoint = endpoint
        self._request_channel = request_channel
        self._frame_bytes_max = frame_bytes_max
        self._readiness_kind = readiness_kind
        self._log = log
        self._selector: Selector | None = None
        self._next_index = 0
        self._all_answered: trio.Event | None = None
        self._responses: deque[Request] = deque()
        self._held: deque[Request] = deque()
        self._new_connections, self._incoming = trio.open_memory_channel[socket.socket](
            CONNECTION_QUEUE_SIZE
        )
        self.closed: Counter[CloseReason] = Counter()
        self._is_closed = False
        self._handed_over = 0
        self.in_flight = 0
        self.request_queue_full = 0
        self.requests_received = 0
        self.responses_sent = 0
        self.connections_created = 0

    @property
    def connection_count(self) -> int:
        return len(self._selector) if self._selector is not None else 0

    @property
    def bytes_received(self) -> int:
        return self._selector.bytes_received if self._selector is not None else 0

    @property
    def bytes_sent(self) -> int:
        return self._selector.bytes_sent if self._selector is not None else 0

    @property
    def response_queue_size(self) -> int:
        return len(self._responses)

    @property
    def channels(self) -> list[Channel]:
        return list(self._selector.channels) if self._selector is not None else []

    def offer_connection(self, sock: socket.socket) -> bool:
        """Queue an accepted socket; False when this processor's queue is full."""
        try:
            self._new_connections.send_nowait(sock)
        except trio.WouldBlock:
            return False
        except _ENDED:
            sock.close()  # the server is stopping, and this processor was the first to hear of it
            return True
        self._handed_over += 1
        self.wakeup()
        return True

    async def accept_connection(self, sock: socket.socket) -> None:
        """Queue an accepted socket, waiting for room; cancelled, the socket is the caller's."""
        try:
            await self._new_connections.send(sock)
        except _ENDED:
            sock.close()
            return
        self._handed_over += 1
        self.wakeup()

    def wakeup(self) -> None:
        if self._selector is not None:
            self._selector.wakeup()

    def enqueue_response(self, request: Request) -> None:
        """Take an answered request; its answer is sent in the loop's next turn at the latest."""
        if self._is_closed:
            return  # the server is stopping, and has closed the connection
        self._responses.append(request)
        if len(self._responses) == 1:  # for those behind it, all of this is done already
            self._request_channel.has_responses(self)
            self.wakeup()

    async def drain(self) -> None:
        """Read nothing more, and wait until every request received has had its answer written."""
        assert self._selector is not None
        self._all_answered = trio.Event()
        if not self.in_flight:
            self._all_answered.set()
        self._selector.pause_reading()
        await self._all_answered.wait()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; then every channel is closed.

        Reports ``started`` when connections can be handed over.
        """
        async with open_readiness(self._readiness_kind) as readiness:
            self._selector = Selector(readiness, self._on_channel_error)
            task_status.started()
            try:
                while True:
                    self.configure_new_connections()
                    self.process_new_responses()
                    result = await self.poll()
                    self.process_completed_receives(result.completed_receives)
                    self.process_completed_sends(result.completed_sends)
                    self.process_disconnected(result.disconnected)
            finally:
                self._close()

    # The six steps of a turn.

    def configure_new_connections(self) -> None:
        """Register what the acceptor handed over, at most one queue of it."""
        while self._handed_over:
            self._handed_over -= 1
            self._register(self._incoming.receive_nowait())

    def process_new_responses(self) -> None:
        """Begin the Sends of the answers that came since the last turn."""
        responses = self._responses
        while responses:
            request = responses.popleft()
            try:
                self._respond(request)
            except Exception as error:  # boundary: one channel's step (KAFKA-5790)
                self._fail(request.channel, error)
        if self._held:
            self._hand_over_held()

    async def poll(self) -> PollResult:
        """Wait for, and make, progress on the sockets."""
        assert self._selector is not None
        if self._request_channel.wake_handler():
            # Those that were woken before are held up; look again before the loop parks.
            self._selector.wakeup()
        try:
            return await self._selector.poll()
        except Exception:  # boundary: a failing poll never ends the loop (KAFKA-5607)
            self._log.exception("poll failed; processor %d goes on", self.id)
            await trio.lowlevel.checkpoint()
            return PollResult()

    def process_completed_receives(self, receives: list[tuple[Channel, Frame]]) -> None:
        """Hand each receive to the handlers and mute its channel until it is answered."""
        for channel, frame in receives:
            try:
                self._hand_over(channel, frame)
            except Exception as error:  # boundary: one channel's step
                self._fail(channel, error)

    def process_completed_sends(self, channels: list[Channel]) -> None:
        """Let each channel whose answer has left speak again."""
        for channel in channels:
            try:
                self._finish(channel)
                self.responses_sent += 1
            except Exception as error:  # boundary: one channel's step
                self._fail(channel, error)

    def process_disconnected(self, channels: list[Channel]) -> None:
        """Forget channels that ended."""
        for channel in channels:
            try:
                self._forget(channel)
            except Exception as error:  # boundary: one channel's step
                self._on_channel_error(channel, error)

    # Parts of the steps.

    def _register(self, sock: socket.socket) -> None:
        assert self._selector is not None
        try:
            id = ConnectionId.of(sock, self.id, self._next_index)
            self._next_index = 0 if self._next_index == _INDEX_MAX else self._next_index + 1
            channel = Channel(str(id), PlaintextTransport(sock), self._frame_bytes_max)
            self._selector.register(channel)
        except Exception as error:  # boundary: one channel's step
            self._log.warning("could not set up an accepted connection: %s", error)
            self.closed[CloseReason.REGISTER_FAILED] += 1
            sock.close()
            return
        self.connections_created += 1
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("processor %d created connection %s", self.id, channel.id)

    def _respond(self, request: Request) -> None:
        selector = self._selector
        assert selector is not None
        channel = request.channel
        response: Response | None = request.response
        if channel.close_reason is not None:
            self._log.warning("dropping a response: %s is closed", channel.id)
        elif isinstance(response, Send):
            if selector.send(channel, response):
                # Unmuted before the poll, not after it: the peer's next request is often there
                # already, and a muted channel with data costs two calls to the poller.
                self._finish(channel)
                self.responses_sent += 1
        elif isinstance(response, NoOp):
            self._finish(channel)
        elif isinstance(response, CloseConnection):
            selector.disconnect(channel, response.reason, response.detail)
        else:
            raise TypeError(f"{response!r} is not a response")

    def _hand_over(self, channel: Channel, frame: Frame) -> None:
        assert self._selector is not None
        request = channel.attachment = Request(self, channel, frame)
        self.requests_received += 1
        self.in_flight += 1
        self._selector.mute(channel)
        if self._held or not self._request_channel.offer(request):
            self._hold(request)

    def _finish(self, channel: Channel) -> None:
        """The channel's request is answered: it may send the next."""
        assert self._selector is not None
        if channel.attachment is None:
            raise LocalProtocolError(f"{channel.id} sent what nobody asked for")
        channel.attachment = None
        self.in_flight -= 1
        if self._all_answered is not None and not self.in_flight:
            self._all_answered.set()
        self._selector.unmute(channel)

    def _hold(self, request: Request) -> None:
        """The request channel is full: keep this one, read nothing, go on answering."""
        assert self._selector is not None
        if not self._held:
            self.request_queue_full += 1
            self._selector.pause_reading()
            self._request_channel.wake_when_free(self)
        self._held.append(request)

    def _hand_over_held(self) -> None:
        assert self._selector is not None
        while self._held:
            if not self._request_channel.offer(self._held[0]):
                self._request_channel.wake_when_free(self)
                return
            self._held.popleft()
        if self._all_answered is None:
            self._selector.resume_reading()

    def _fail(self, channel: Channel, error: Exception) -> None:
        assert self._selector is not None
        self._on_channel_error(channel, error)
        self._selector.disconnect(channel, CloseReason.ERROR, repr(error))

    def _forget(self, channel: Channel) -> None:
        reason = channel.close_reason
        assert reason is not None
        if channel.attachment is not None:
            channel.attachment = None
            self.in_flight -= 1
            if self._all_answered is not None and not self.in_flight:
                self._all_answered.set()
        self.closed[reason] += 1
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug(
                "connection %s disconnected: %s%s",
                channel.id,
                reason.value,
                f" ({channel.close_detail})" if channel.close_detail else "",
            )

    def _on_channel_error(self, channel: Channel, error: Exception) -> None:
        self._log.warning("unexpected error on %s; closing it", channel.id, exc_info=error)

    def _close(self) -> None:
        assert self._selector is not None
        for channel in self._selector.close_all(CloseReason.SERVER_SHUTDOWN):
            self._forget(channel)
        self._is_closed = True
        self._responses.clear()
        self._new_connections.close()
        while True:
            try:
                self._incoming.receive_nowait().close()
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        self._incoming.close()
