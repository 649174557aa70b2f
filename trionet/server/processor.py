"""One network loop: its connections, their receives and their responses, in six steps.

(Kafka: SocketServer.Processor.) A turn is: configure new connections, process new responses, poll,
completed receives, completed sends, disconnected. One request of a channel is out at a time: a
receive is handed over, the channel is muted, and it is unmuted when its Send is complete, or at
once for a no-op. Any error in one channel's step closes that channel only; only cancellation
leaves the loop.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter, deque
from typing import Final

import trio

from ..errors import LocalProtocolError
from ..metrics.request_times import TimedRequest, count_finished, now_ns
from ..net.channel import Channel
from ..net.close_reason import BY_PEER, CloseReason
from ..net.endpoint import ConnectionId, Endpoint
from ..net.framing import Frame
from ..net.memory_pool import MemoryLease
from ..net.mute_state import MuteEvent, MuteState, after
from ..net.poll_result import PollResult
from ..net.readiness import EVENTS_MAX
from ..net.selector import Selector
from ..net.selector_counters import SelectorCounters
from ..net.transmission import Send
from .accepted import Accepted, drop
from .channel_builder import ChannelBuilder
from .closed_connections import ClosedConnection
from .connection import Connection
from .handler_pool import handle_waiting, has_lone
from .request_channel import CloseConnection, NoOp, Request, Response, ResponseQueue
from .shared import Shared

# Accepted connections that may wait for a processor; when all are full the acceptor waits
# (KIP-402).
CONNECTION_QUEUE_SIZE = 20
_INDEX_MAX = 2**31 - 1
# A look-up in an enum's class costs as much as three in a module.
_NOT_MUTED: Final = MuteState.NOT_MUTED
_RESPONSE_PENDING: Final = MuteState.MUTED_AND_RESPONSE_PENDING
# What asking a socket for its peer's address raises when that has gone (macOS: EINVAL).
_GONE = (errno.ENOTCONN, errno.EINVAL)
# What queueing a connection raises when the processor has ended.
_ENDED = (trio.ClosedResourceError, trio.BrokenResourceError)


class Processor:
    """A selector and the loop that drives it.

    Args:
        id: number of the processor, part of connection ids.
        endpoint: the listener whose connections it serves.
        builder: makes the channels of that listener.
        shared: what it shares with the server's other processors.
    """

    def __init__(
        self, id: int, endpoint: Endpoint, builder: ChannelBuilder, shared: Shared
    ) -> None:
        self.id = id
        self.endpoint = endpoint
        self._builder = builder
        self._shared = shared
        self._request_channel = shared.request_channel
        self._times = shared.times
        self._never_waits = shared.never_waits
        self._recorder = shared.recorder
        self._log = shared.log
        self._selector: Selector | None = None
        self._next_index = 0
        self._all_answered: trio.Event | None = None
        self._scope: trio.CancelScope | None = None
        self.responses = ResponseQueue(shared.request_channel, self)
        self._held: deque[Request] = deque()
        self._finished: list[TimedRequest] = []
        self._polled_ns = 0
        self._new_connections, self._incoming = trio.open_memory_channel[Accepted](
            CONNECTION_QUEUE_SIZE
        )
        self.closed: Counter[CloseReason] = Counter()
        self._handed_over = 0
        self.in_flight = self.request_queue_full = 0
        self.requests_received = self.responses_sent = self.connections_created = 0
        self.counters = SelectorCounters()
        self._largest_send = self.counters.largest_send

    @property
    def connection_count(self) -> int:
        return len(self._selector.channels) if self._selector is not None else 0

    @property
    def bytes_received(self) -> int:
        return self._selector.channels.bytes_received if self._selector is not None else 0

    @property
    def bytes_sent(self) -> int:
        return self._selector.channels.bytes_sent if self._selector is not None else 0

    @property
    def response_queue_size(self) -> int:
        return len(self.responses.requests)

    @property
    def channels(self) -> list[Channel]:
        return list(self._selector.channels) if self._selector is not None else []

    @property
    def selector(self) -> Selector:
        """Where its channels are, once it runs."""
        assert self._selector is not None
        return self._selector

    def offer_connection(self, accepted: Accepted) -> bool:
        """Queue an accepted connection; False when this processor's queue is full."""
        try:
            self._new_connections.send_nowait(accepted)
        except trio.WouldBlock:
            return False
        except _ENDED:
            drop(accepted)  # it is stopping, and was the first to hear of it
            return True
        self._handed_over += 1
        self.wakeup()
        return True

    async def accept_connection(self, accepted: Accepted) -> None:
        """Queue an accepted connection, waiting for room; cancelled, it is the caller's."""
        try:
            await self._new_connections.send(accepted)
        except _ENDED:
            drop(accepted)
            return
        self._handed_over += 1
        self.wakeup()

    def wakeup(self) -> None:
        if self._selector is not None:
            self._selector.wakeup()

    def end(self) -> None:
        """End :meth:`run`, which has started."""
        assert self._scope is not None
        self._scope.cancel(reason="fewer processors are wanted")

    async def drain(self) -> None:
        """Read nothing more, and wait until every request received has had its answer written."""
        self._all_answered = trio.Event()
        if not self.in_flight:
            self._all_answered.set()
        self.selector.pause_reading()
        await self._all_answered.wait()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until :meth:`end` or cancellation; then every channel is closed.

        Reports ``started`` when connections can be handed over.
        """
        shared = self._shared
        async with (
            shared.network.open_readiness(shared.readiness_kind) as readiness,
            trio.open_nursery() as own,
        ):
            selector = self._selector = Selector(
                readiness,
                self._on_channel_error,
                idle_seconds_max=shared.idle_seconds_max,
                authentication_seconds_max=shared.authentication_seconds_max,
                pool=shared.pool,
                shuffle=shared.network.shuffle,
            )
            self.counters = selector.counters
            self._largest_send = self.counters.largest_send
            self._scope = own.cancel_scope
            own.start_soon(selector.alarm.keep_time, name=f"alarm of processor {self.id}")
            task_status.started()
            try:
                while True:
                    try:
                        self.configure_new_connections()
                        self.process_new_responses()
                        result = await self.poll()
                        self.process_completed_receives(result.completed_receives)
                        self.process_completed_sends(result.completed_sends)
                        self.process_disconnected(result.disconnected)
                        if self._finished:
                            self._count_finished()
                        if shared.quotas.is_exceeded(self.endpoint.listener_name):
                            self.close_excess_connection()
                    except Exception as error:  # boundary: nothing but cancellation ends the loop
                        shared.faults.note(f"a turn of processor {self.id}", error)
                        await trio.lowlevel.checkpoint()
            finally:
                self._close()
                self._count_finished()

    # The six steps of a turn.

    def configure_new_connections(self) -> None:
        """Register what the acceptor handed over, at most one queue of it."""
        while self._handed_over:
            self._handed_over -= 1
            self._register(self._incoming.receive_nowait())

    def process_new_responses(self) -> None:
        """Begin the Sends of the answers that came since the last turn."""
        self.send_new_responses()
        # In its own turn only: while it polls, a handler that has made room must not have it read
        # for more room than it polls for.
        if self._held:
            self._hand_over_held()

    def send_new_responses(self) -> None:
        """Send what is in the response queue; between turns handlers may ask for it, too."""
        responses = self.responses
        if responses.requests:
            self.selector.look_at_clock()
            answered, responses.requests = responses.requests, []
            finished = self._finished
            began_ns = at_ns = now_ns()
            for request in answered:
                request.picked_up_ns = at_ns
                try:
                    self._respond(request)
                except Exception as error:  # boundary: one channel's step (KAFKA-5790)
                    self._fail(request.channel, error)
                at_ns = now_ns()
                if request.channel.send is None:
                    request.sent_ns = at_ns
                    finished.append(request)
            self.counters.io_ns += at_ns - began_ns

    async def poll(self) -> PollResult:
        """Wait for, and make, progress on the sockets."""
        channel, never_waits = self._request_channel, self._never_waits
        if never_waits and not self._held and has_lone(channel, never_waits, self._log):
            # A handler would take a pass of the scheduler, a fifth of the work of a small Produce.
            await handle_waiting(channel, self._shared.handler, self._log)
        elif channel.wake_handler():
            # Those that were woken before are held up; look again before the loop parks.
            self.selector.wakeup()
        # What is read beyond the queue's room is held: in memory, and one of each channel at worst.
        room = EVENTS_MAX if self._held else channel.room
        try:
            return await self.selector.poll(min(EVENTS_MAX, room))
        except Exception as error:  # boundary: a failing poll never ends the loop (KAFKA-5607)
            self._shared.faults.note(f"a poll of processor {self.id}", error)
            await trio.lowlevel.checkpoint()
            return self.selector.take_result()

    def process_completed_receives(self, receives: list[tuple[Channel, Frame]]) -> None:
        """Hand each receive to the handlers and mute its channel until it is answered."""
        if receives:
            self._polled_ns = now_ns()
        for channel, frame in receives:
            try:
                self._hand_over(channel, frame)
            except Exception as error:  # boundary: one channel's step
                self._fail(channel, error)
        receives.clear()  # or a loop that waits would keep the frames of its last turn in memory

    def process_completed_sends(self, channels: list[Channel]) -> None:
        """Let each channel whose answer has left speak again."""
        for channel in channels:
            try:
                self._note_sent(channel)
                self._finish(channel)
                self.responses_sent += 1
            except Exception as error:  # boundary: one channel's step
                self._fail(channel, error)

    def process_disconnected(self, channels: list[Channel]) -> None:
        """Forget channels that ended."""
        for channel in channels:
            try:
                self._forget(channel)
            except Exception as error:  # boundary: one channel, and the recorder
                self._shared.faults.note("forgetting a connection", error)
        channels.clear()  # or a loop that waits would keep the last that went

    def close_excess_connection(self) -> None:
        """Make room for another listener's: close the connection that was used least recently."""
        channel = self.selector.idle.least_recently_used()
        if channel is not None:
            self.selector.disconnect(channel, CloseReason.EXCESS_CONNECTION)
            # At once, or the other processors would close one each.
            channel.attachment.guard.release()
            self.selector.wakeup()  # there may be more

    # Parts of the steps.

    def _count_finished(self) -> None:
        if self._recorder is not None:
            try:
                self._recorder.take(self._finished)
            except Exception as error:  # boundary: the recorder
                self._shared.faults.note("the recorder of requests", error)
        count_finished(self._finished)

    def _register(self, accepted: Accepted) -> None:
        sock, remote, guard = accepted
        self.connections_created += 1
        try:
            id = ConnectionId.of(sock, remote, self.id, self._next_index)
            self._next_index = 0 if self._next_index == _INDEX_MAX else self._next_index + 1
            channel = self._builder.build(str(id), sock, id.remote_host)
            try:
                sock.getpeername()
            except OSError:  # it has gone
                if not channel.transport.has_unread():
                    raise  # and left nothing to be handled
            self.selector.register(channel)
        except Exception as error:  # boundary: one channel's step
            # Peers that have gone are no news: a storm of them must not fill the disk with lines.
            has_gone = isinstance(error, OSError) and error.errno in _GONE
            level = logging.DEBUG if has_gone else logging.WARNING
            self._log.log(level, "could not set up an accepted connection: %s", error)
            self.closed[CloseReason.REGISTER_FAILED] += 1
            self._shared.closed_connections.count(CloseReason.REGISTER_FAILED)
            drop(accepted)
            return
        channel.attachment = Connection(id.remote_host, id.remote_port, guard, channel.last_used_at)
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("processor %d created connection %s", self.id, channel.id)

    def _respond(self, request: Request) -> None:
        selector = self.selector
        channel = request.channel
        response: Response | None = request.response
        if channel.close_reason is not None:
            request.return_lease()
            if isinstance(response, NoOp):
                pass
            elif channel.close_reason in BY_PEER:
                self._log.debug("%s disconnected before its response was sent", channel.id)
            else:
                self._log.warning("dropping a response: %s is closed", channel.id)
        elif isinstance(response, bytes) or isinstance(response, Send):  # noqa: SIM101 # no tuple
            size = len(response) if isinstance(response, bytes) else response.size
            self._largest_send.current = max(self._largest_send.current, size)
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
        connection: Connection = channel.attachment
        request = Request(self.responses, channel, frame, self._times, self._polled_ns)
        if channel.lease is not None:
            request.lease = channel.take_lease()
        connection.request = request
        connection.requests += 1
        self.requests_received += 1
        self.in_flight += 1
        connection.mute_state = _RESPONSE_PENDING
        self.selector.mute(channel)
        if self._held or not self._request_channel.offer(request):
            self._hold(request)

    def _note_sent(self, channel: Channel) -> None:
        connection: Connection = channel.attachment
        request: Request | None = connection.request
        if request is not None:
            request.sent_ns = now_ns()
            self._finished.append(request)

    def _finish(self, channel: Channel) -> None:
        """The channel's request is answered: it may send the next, unless it is throttled."""
        connection: Connection = channel.attachment
        request: Request | None = connection.request
        if request is None:
            raise LocalProtocolError(f"{channel.id} sent what nobody asked for")
        if request.lease is not None:
            request.release()
        request.is_answered = True
        self._end_request(connection)
        if connection.mute_state is _RESPONSE_PENDING:
            connection.mute_state = _NOT_MUTED
            self.selector.unmute(channel)
        else:
            connection.mute_state = after(connection.mute_state, MuteEvent.RESPONSE_SENT)

    def _end_request(self, connection: Connection) -> None:
        connection.request = None
        self.in_flight -= 1
        if self._all_answered is not None and not self.in_flight:
            self._all_answered.set()

    def release_memory(self, lease: MemoryLease) -> None:
        """Give the memory of a large request back."""
        pool = self._shared.pool
        assert pool is not None
        pool.release(lease, trio.current_time())

    def start_throttling(self, request: Request) -> None:
        """Keep a request's channel muted beyond its answer (see Request.start_throttling)."""
        if not request.channel.is_open:
            return
        connection: Connection = request.channel.attachment
        if connection.request is not request:
            raise LocalProtocolError(f"{request!r} is answered already; nothing to be throttled")
        connection.mute_state = after(connection.mute_state, MuteEvent.THROTTLE_STARTED)
        connection.throttled_ns = now_ns()
        request.throttle_ns = -1

    def end_throttling(self, request: Request) -> None:
        """Undo :meth:`start_throttling`; read the channel if its answer has left."""
        channel = request.channel
        connection: Connection = channel.attachment
        if request.throttle_ns < 0:
            request.throttle_ns = now_ns() - connection.throttled_ns
            if self._recorder is not None:
                try:
                    self._recorder.throttle_ended(request)
                except Exception as error:  # boundary: the recorder
                    self._shared.faults.note("the recorder of requests", error)
        if not channel.is_open:
            return
        connection.mute_state = after(connection.mute_state, MuteEvent.THROTTLE_ENDED)
        request.times.throttled(request.throttle_ns)
        if connection.mute_state is MuteState.MUTED:
            connection.mute_state = MuteState.NOT_MUTED
            self.selector.unmute(channel)
            self.wakeup()

    def _hold(self, request: Request) -> None:
        """The request channel is full: keep this one, read nothing, go on answering."""
        if not self._held:
            self.request_queue_full += 1
            self.selector.pause_reading()
            self._request_channel.wake_when_free(self)
        self._held.append(request)

    def _hand_over_held(self) -> None:
        while self._held:
            if not self._request_channel.offer(self._held[0]):
                self._request_channel.wake_when_free(self)
                return
            self._held.popleft()
        if self._all_answered is None:
            self.selector.resume_reading()

    def _fail(self, channel: Channel, error: Exception) -> None:
        self._on_channel_error(channel, error)
        self.selector.disconnect(channel, CloseReason.ERROR, repr(error))

    def _forget(self, channel: Channel) -> None:
        reason = channel.close_reason
        assert reason is not None
        self.closed[reason] += 1
        connection: Connection | None = channel.attachment
        if connection is not None:
            request: Request | None = connection.request
            if request is not None:
                if request.picked_up_ns and not request.sent_ns:
                    self._note_sent(channel)  # its answer was under way (KAFKA-3489)
                if request.handled_ns:
                    request.return_lease()  # a handler that has its payload is still to come back
                self._end_request(connection)
            if connection.guard is not None:
                connection.guard.release()
            closed = ClosedConnection.of(
                channel, connection, self.endpoint, self.id, trio.current_time()
            )
            self._shared.closed_connections.add(closed)
            if self._recorder is not None:
                self._recorder.closed(closed, connection)
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
        self.process_disconnected(self.selector.close_all(CloseReason.SERVER_SHUTDOWN))
        self.responses.close()
        self._new_connections.close()
        while True:
            try:
                drop(self._incoming.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        self._incoming.close()
