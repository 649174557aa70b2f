"""One network loop: its connections, their receives and their responses, in six steps.

(Kafka: SocketServer.Processor.) A turn is: configure new connections, process new responses, poll,
completed receives, completed sends, disconnected. The order matters:

* Responses go out before the poll, so that a channel whose request is done is unmuted in time for
  its next request.
* Receives come before sends: what a poll has read is handed to the handlers before time is spent on
  what is over.
* Disconnected channels come last: a channel may have brought its last request, or completed its
  last Send, in the poll in which it ended. It is forgotten after that is accounted for.

One request of a channel is out at a time: a receive is handed over, the channel is muted, and it is
unmuted when its Send is complete, or at once for a no-op. Any error in one channel's step closes
that channel only; only cancellation leaves the loop.
"""

from __future__ import annotations

import errno
import logging
import math
from collections import deque
from typing import Final

import trio

from ..errors import LocalProtocolError
from ..metrics.request_times import TimedRequest, now_ns
from ..net.channel import Channel
from ..net.close_reason import BY_PEER, CloseReason
from ..net.endpoint import ConnectionId, Endpoint
from ..net.framing import Frame
from ..net.mute_state import MuteEvent
from ..net.poll_result import PollResult
from ..net.readiness import EVENTS_MAX
from ..net.selector import Selector
from ..net.transmission import Send
from .accepted import Accepted, NewConnections, drop
from .channel_builder import ChannelBuilder
from .closed_connections import ClosedConnection
from .connection import Connection
from .handler_pool import NeverWaits, handle_waiting, has_lone
from .processor_counts import ProcessorCounts
from .request_channel import CloseConnection, NoOp, Request, Response, ResponseQueue
from .shared import Shared

_INDEX_MAX = 2**31 - 1
# A look-up in an enum's class costs as much as three in a module.
_REQUEST_RECEIVED: Final = MuteEvent.REQUEST_RECEIVED
_RESPONSE_SENT: Final = MuteEvent.RESPONSE_SENT
# What asking a socket for its peer's address raises when that has gone (macOS: EINVAL).
_GONE = (errno.ENOTCONN, errno.EINVAL)


class Processor:
    """The loop that drives a selector.

    Args:
        id: number of the processor, part of connection ids.
        endpoint: the listener whose connections it serves.
        builder: makes the channels of that listener.
        shared: what it shares with the server's other processors.
        selector: of this processor alone; its alarm is run beside the loop.

    Attributes:
        counts: what it did and holds.
        new_connections: where acceptors put them.
        responses: where handlers put them.
    """

    def __init__(
        self,
        id: int,
        endpoint: Endpoint,
        builder: ChannelBuilder,
        shared: Shared,
        selector: Selector,
    ) -> None:
        self.id = id
        self.endpoint = endpoint
        self.selector = selector
        self._builder = builder
        self._shared = shared
        self._request_channel = shared.request_channel
        self._times = shared.times
        self._log = shared.log
        self._recording = shared.recording
        self.new_connections = NewConnections(selector.wakeup)
        self.responses = ResponseQueue(
            shared.request_channel,
            id,
            endpoint,
            selector,
            shared.recording,
            self.send_new_responses,
        )
        self.counts = ProcessorCounts(id, endpoint, selector, self.responses)
        self._largest_send = selector.counters.largest_send
        self._next_index = 0
        self._held: deque[Request] = deque()
        self._finished: list[TimedRequest] = []
        self._polled_ns = 0
        self._all_answered: trio.Event | None = None
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Serve until :meth:`end` or cancellation; then every channel is closed."""
        shared = self._shared
        try:
            with self._scope:
                while True:
                    try:
                        self.configure_new_connections()
                        self.process_new_responses()
                        if shared.never_waits is not None:
                            await self.serve_lone_request(shared.never_waits)
                        result = await self.poll()
                        self.process_completed_receives(result.completed_receives)
                        self.process_completed_sends(result.completed_sends)
                        self.process_disconnected(result.disconnected)
                        if self._finished:
                            self._recording.count(self._finished)
                        if shared.quotas.is_exceeded(self.endpoint.listener_name):
                            self.close_excess_connection()
                    except Exception as error:  # boundary: nothing but cancellation ends the loop
                        shared.faults.note(f"a turn of processor {self.id}", error)
                        await trio.lowlevel.checkpoint()
        finally:
            self.process_disconnected(self.selector.close_all(CloseReason.SERVER_SHUTDOWN))
            for request in self._held:
                request.return_lease()  # no handler will ever have it
            self.responses.close()
            self.new_connections.close()
            self._recording.count(self._finished)

    def end(self) -> None:
        """End :meth:`run`."""
        self._scope.cancel(reason="fewer processors are wanted")

    async def drain(self) -> None:
        """Read nothing more, and wait until every response that is owed has been written."""
        self._all_answered = trio.Event()
        if not self.counts.in_flight:
            self._all_answered.set()
        self.selector.pause_reading()
        await self._all_answered.wait()

    # The steps of a turn.

    def configure_new_connections(self) -> None:
        """Register what the acceptor handed over, at most one queue of it."""
        while self.new_connections.waiting:
            self._register(self.new_connections.take())

    def process_new_responses(self) -> None:
        """Begin the Sends of the responses that came since the last turn."""
        self.send_new_responses()
        # In its own turn only: while it polls, a handler that has made room must not have it read
        # for more room than it polls for.
        if self._held:
            self._hand_over_held()

    def send_new_responses(self) -> None:
        """Send what is in the response queue; between turns handlers may ask for it, too."""
        answered = self.responses.take()
        if not answered:
            return
        self.selector.look_at_clock()
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
                self._finished.append(request)
        self.selector.counters.io_ns += at_ns - began_ns
        # Not left to the end of a turn: the processor may wait for its next event already.
        self._recording.count(self._finished)

    async def serve_lone_request(  # noqa: ASYNC910 - the poll is next
        self, never_waits: NeverWaits
    ) -> None:
        """Handle a request that came alone in this task, if that is certain not to wait.

        A handler would take a pass of the scheduler, a fifth of the work of a small Produce. Where
        several came, or every handler is busy, it waits for a handler as all others.
        """
        channel = self._request_channel
        if not self._held and has_lone(channel, never_waits, self._log):
            await handle_waiting(channel, self._shared.handler, self._log)

    async def poll(self) -> PollResult:
        """Wait for, and make, progress on the sockets."""
        channel = self._request_channel
        channel.call_handler()
        # What is read beyond the queue's room is held: in memory, and one of each channel at worst.
        room = EVENTS_MAX if self._held else channel.room
        try:
            return await self.selector.poll(min(EVENTS_MAX, room), math.inf, self._has_work)
        except Exception as error:  # boundary: a failing poll never ends the loop (KAFKA-5607)
            self._shared.faults.note(f"a poll of processor {self.id}", error)
            await trio.lowlevel.checkpoint()
            return self.selector.take_result()

    def process_completed_receives(self, receives: list[tuple[Channel, Frame]]) -> None:
        """Hand each receive to the handlers and mute its channel until its response has left."""
        if receives:
            self._polled_ns = now_ns()
        for channel, frame in receives:
            try:
                self._hand_over(channel, frame)
            except Exception as error:  # boundary: one channel's step
                self._fail(channel, error)
        receives.clear()  # or a loop that waits would keep the frames of its last turn in memory

    def process_completed_sends(self, channels: list[Channel]) -> None:
        """Let each channel whose response has left speak again."""
        for channel in channels:
            try:
                request: Request | None = channel.attachment.request
                if request is not None:
                    request.sent_ns = now_ns()
                    self._finished.append(request)
                self._finish(channel)
                self.counts.responses_sent += 1
            except Exception as error:  # boundary: one channel's step
                self._fail(channel, error)

    def process_disconnected(self, channels: list[Channel]) -> None:
        """Forget channels that ended."""
        for channel in channels:
            try:
                self._forget(channel)
            except Exception as error:  # boundary: one channel
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

    def _has_work(self) -> bool:
        """Whether a response waits, or a request that a handler could take if it had its batch.

        A handler that is held up by its first request leaves the others; they are sent to another
        in the next turn.
        """
        return len(self.responses) > 0 or self._request_channel.has_taker

    def _register(self, accepted: Accepted) -> None:
        sock, remote, guard = accepted
        self.counts.connections_created += 1
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
            self.counts.closed[CloseReason.REGISTER_FAILED] += 1
            self._shared.closed_connections.count(CloseReason.REGISTER_FAILED)
            drop(accepted)
            return
        channel.attachment = Connection(id.remote_host, id.remote_port, guard, channel.last_used_at)
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("processor %d created connection %s", self.id, channel.id)

    def _hand_over(self, channel: Channel, frame: Frame) -> None:
        request = Request(self.responses, channel, frame, self._times, self._polled_ns)
        connection: Connection = channel.attachment
        connection.request = request
        connection.requests += 1
        counts = self.counts
        counts.requests_received += 1
        counts.in_flight += 1
        self.selector.mute(channel)
        channel.muting.handle(_REQUEST_RECEIVED)
        is_queued = not self._held and self._request_channel.offer(request)
        # Behind all that may fail: the memory of what nobody has taken goes with its channel.
        if channel.lease is not None:
            request.lease = channel.take_lease()
        if is_queued:
            return
        # The request channel is full: keep this one, read nothing, go on sending responses.
        if not self._held:
            counts.request_queue_full += 1
            self.selector.pause_reading()
            self._request_channel.wake_when_free(self.selector.wakeup)
        self._held.append(request)

    def _hand_over_held(self) -> None:
        while self._held:
            if not self._request_channel.offer(self._held[0]):
                self._request_channel.wake_when_free(self.selector.wakeup)
                return
            self._held.popleft()
        if self._all_answered is None:
            self.selector.resume_reading()

    def _respond(self, request: Request) -> None:
        channel = request.channel
        response: Response | None = request.response
        if not channel.is_open:
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
            if self.selector.send(channel, response):
                # Unmuted before the poll, not after it: the peer's next request is often there
                # already, and a muted channel with data costs two calls to the poller.
                self._finish(channel)
                self.counts.responses_sent += 1
        elif isinstance(response, NoOp):
            self._finish(channel)
        elif isinstance(response, CloseConnection):
            self.selector.disconnect(channel, response.reason, response.detail)
        else:
            raise TypeError(f"{response!r} is not a response")

    def _finish(self, channel: Channel) -> None:
        """The channel's response has left: it may send the next, unless it is throttled."""
        connection: Connection = channel.attachment
        request: Request | None = connection.request
        if request is None:
            raise LocalProtocolError(f"{channel.id} completed a Send without a request")
        if request.lease is not None:
            request.release()
        request.is_answered = True
        if channel.network_thread_ns:
            request.network_thread_ns, channel.network_thread_ns = channel.network_thread_ns, 0
        self._end_request(connection)
        channel.muting.handle(_RESPONSE_SENT)
        self.selector.unmute(channel)

    def _end_request(self, connection: Connection) -> None:
        connection.request = None
        self.counts.in_flight -= 1
        if self._all_answered is not None and not self.counts.in_flight:
            self._all_answered.set()

    def _fail(self, channel: Channel, error: Exception) -> None:
        self._shared.log_channel_error(channel, error)
        self.selector.disconnect(channel, CloseReason.ERROR, repr(error))

    def _forget(self, channel: Channel) -> None:
        reason = channel.close_reason
        assert reason is not None
        self.counts.closed[reason] += 1
        connection: Connection | None = channel.attachment
        if connection is not None:
            request: Request | None = connection.request
            if request is not None:
                if request.picked_up_ns and not request.sent_ns:
                    request.sent_ns = now_ns()  # its response was under way (KAFKA-3489)
                    self._finished.append(request)
                if request.handled_ns:
                    request.return_lease()  # a handler that has its payload is still to come back
                self._end_request(connection)
            if connection.guard is not None:
                connection.guard.release()
            closed = ClosedConnection.of(
                channel, connection, self.endpoint, self.id, trio.current_time()
            )
            self._shared.closed_connections.add(closed)
            self._recording.closed(closed, connection)
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug(
                "connection %s disconnected: %s%s",
                channel.id,
                reason.value,
                f" ({channel.close_detail})" if channel.close_detail else "",
            )
