"""The network loop of a processor, which reads requests and sends responses for its connections.

(Kafka: SocketServer.Processor.) Each turn has six steps, always in this order. A turn after a
wake-up ends with ``close_excess_connection`` (Kafka: closeExcessConnections).

1. ``configure_new_connections``: create a channel for each accepted socket, and register it. This
   is first, so that the poll of this turn already reads the channel.
2. ``process_new_responses``: send the responses that handlers have queued, then queue held
   requests. This is before the poll, so that a channel whose response has been sent is unmuted, and
   its next request is read in this poll.
3. ``poll``: read and write the sockets that are ready. This is the only step that waits. It returns
   the channels for the next three steps.
4. ``process_completed_receives``: turn each frame into a request, queue it, and mute its channel.
   This is before the completed Sends, as in Kafka. A channel never has both, since it is muted
   while its response is sent.
5. ``process_completed_sends``: finish the requests whose responses were completed in the poll, and
   unmute their channels. (Most responses have been sent, and finished, by a handler or in step 2.)
6. ``process_disconnected``: account for closed channels, and forget them. This is last, because a
   channel that was closed in the poll may have returned a request or completed a Send before.

Two shortcuts save passes of trio's scheduler. Between the second and the third step, a processor
handles a single queued request itself if the handler is certain not to wait
(``serve_lone_request``). Also, handlers make the processors send responses (``run_turn``) after a
number of requests, when their time is up, and when no request is left. Early in that time, a
processor with several responses also runs steps 3 to 6, without waiting (:mod:`._handler_pool` has
the numbers).

A channel has at most one request in progress: it is muted from the receive until its Send is
complete or, if there is no response, until the NoOp is taken from the response queue. A throttled
channel stays muted longer. An error in one channel's step closes only that channel; only
cancellation ends the loop.
"""

# Compiled by mypyc.

from __future__ import annotations

import errno
import logging
import math
from typing import Final

import trio

from .._util._cancellation import Checkpoint
from ..errors import LocalProtocolError
from ..metrics._request_times import TimedRequest, now_ns
from ..net._channel import Channel
from ..net._channel_state import MuteEvent
from ..net._channels import PollResult
from ..net._selector import Selector
from ..net.wire._close_reason import BY_PEER, CloseReason
from ..net.wire._endpoint import ConnectionId, Endpoint
from ..net.wire._framing import Frame
from ..net.wire._transmission import Send
from ._channel_builder import ChannelBuilder
from ._closed_connections import ClosedConnection
from ._connection import Accepted, Connection, NewConnections, drop
from ._handler_pool import NeverWaits, handle_waiting
from ._processor_counts import ProcessorCounts
from ._request_channel import CloseConnection, NoOp, Request, Response, ResponseQueue
from ._shared import Shared

_INDEX_MAX = 2**31 - 1
# The maximum number of socket events per turn (see Selector.poll). The handlers drain the requests
# before the next turn, so that a request is still in the CPU's cache when it is handled, its socket
# included; reading from 500 connections before the first is handled costs a request 4 % more than
# turns of this size do.
RECEIVES_PER_TURN_MAX: Final = 128
# Responses written one after the other share a timestamp, in groups of this size. Reading the clock
# for each would cost 2 % of a small request; this overstates a response's send time by the writes
# that follow it in its group, about 20 µs at most.
RESPONSES_PER_TIMESTAMP: Final = 8
# A lookup in an enum's class costs as much as three in a module.
_REQUEST_RECEIVED: Final = MuteEvent.REQUEST_RECEIVED
_RESPONSE_SENT: Final = MuteEvent.RESPONSE_SENT
# Errors of getpeername() when the peer has already disconnected (macOS: EINVAL).
_GONE = (errno.ENOTCONN, errno.EINVAL)


class Processor:
    """A processor, which serves some of a listener's connections with its own selector.

    Args:
        id: the processor's number, which is part of the connection ids.
        endpoint: the listener of the connections.
        builder: creates the channels of that listener.
        shared: the state shared by all processors of the server.
        selector: used by this processor only; the caller runs its alarm alongside the loop.

    Attributes:
        counts: the statistics of this processor.
        new_connections: the accepted connections that the acceptor has queued.
        responses: the responses that the handlers have queued.
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
            self.run_turn,
        )
        self.counts = ProcessorCounts(id, endpoint, selector, self.responses)
        self._largest_send = selector.counters.largest_send
        self._next_index = 0
        self._held: list[Request] = []
        self._has_work: Final = self.responses.has_work  # a bound method costs as much as its call
        self._finished: list[TimedRequest] = []
        self._polled_ns = 0
        self._looks_at_sockets = True
        self._drained: trio.Event | None = None
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Serve until :meth:`end` or cancellation, then close every channel."""
        shared, never_waits = self._shared, self._shared.never_waits
        self.selector.checkpoint = Checkpoint()
        try:
            with self._scope:
                while True:
                    try:
                        self.configure_new_connections()
                        self.process_new_responses()
                        if never_waits is not None:
                            await self.serve_lone_request(never_waits)
                        result = await self.poll()
                        self.process_completed_receives(result.completed_receives)
                        self.process_completed_sends(result.completed_sends)
                        self.process_disconnected(result.disconnected)
                        if self._finished:
                            self._recording.count(self._finished)
                        if self.selector.was_woken:
                            self.close_excess_connection()
                    except Exception as error:  # boundary: nothing but cancellation ends the loop
                        shared.faults.note(f"a turn of processor {self.id}", error)
                        await trio.lowlevel.checkpoint()
        finally:
            self.process_disconnected(self.selector.close_all(CloseReason.SERVER_SHUTDOWN))
            for request in self._held:
                request.return_lease()  # it will never reach a handler
            self.responses.close()
            self.new_connections.close()
            self._recording.count(self._finished)

    def end(self) -> None:
        """Make :meth:`run` close all channels and return."""
        self._scope.cancel(reason="the number of processors was reduced")

    async def drain(self) -> None:
        """Stop reading, and wait until every pending response has been sent.

        May be called more than once, such as for a surplus processor of a server that stops.
        """
        if self._drained is None:
            self._drained = trio.Event()
        if not self.counts.in_flight:
            self._drained.set()
        self.selector.pause_reading()
        await self._drained.wait()

    # The steps of a turn.

    def configure_new_connections(self) -> None:
        """Register the connections that the acceptor has queued."""
        while self.new_connections.waiting:
            self._register(self.new_connections.take())

    def process_new_responses(self) -> None:
        """Send the responses queued since the last turn, then queue the held requests."""
        self.send_new_responses()
        # Only in the processor's own turn: if a handler that frees space did this during a poll,
        # reading would resume for more requests than the poll was limited to.
        if not self._held:
            return
        while self._held:
            if not self._request_channel.offer(self._held[0]):
                self._request_channel.wake_when_free(self.selector.wakeup)
                return
            del self._held[0]
        if self._drained is None:
            self.selector.resume_reading()

    def run_turn(self, may_poll: bool) -> None:
        """Run a turn without waiting, for a handler whose responses are due.

        This sends the queued responses. If there are several and ``may_poll`` is true, it also
        polls the sockets: under load the next requests have already arrived, and the handler
        continues with them, without a pass of trio's scheduler in between.

        A single response is not worth a poll, since the peer takes longer to send another request.
        If one of the new requests makes the handler wait, the processor passes the others to
        another handler, because the responses have unparked the processor.

        Args:
            may_poll: False if a poll would keep other processors waiting for too long.
        """
        is_busy = may_poll and len(self.responses) > 1
        self.send_new_responses()
        if not is_busy:
            return
        try:
            result = self.selector.poll_now(min(RECEIVES_PER_TURN_MAX, self._request_channel.room))
        except Exception as error:  # boundary: as in :meth:`poll`
            self._shared.faults.note(f"a poll of processor {self.id}", error)
            return
        self.process_completed_receives(result.completed_receives)
        self.process_completed_sends(result.completed_sends)
        self.process_disconnected(result.disconnected)

    def send_new_responses(self) -> None:
        """Send the queued responses."""
        responded = self.responses.take()
        if not responded:
            return
        if self.selector.is_parked:
            self.selector.look_at_clock()
        began_ns = at_ns = now_ns()
        for start in range(0, len(responded), RESPONSES_PER_TIMESTAMP):
            group = responded[start : start + RESPONSES_PER_TIMESTAMP]
            for request in group:
                request.picked_up_ns = at_ns
                try:
                    self._respond(request)
                except Exception as error:  # boundary: one channel's step (KAFKA-5790)
                    self._fail(request.channel, error)
            at_ns = now_ns()
            for request in group:
                if request.channel.send is None:
                    request.sent_ns = at_ns
                    self._finished.append(request)
        self.selector.counters.io_ns += at_ns - began_ns
        # Not left to the end of a turn: the processor may already be waiting for its next event.
        self._recording.count(self._finished)

    async def serve_lone_request(  # noqa: ASYNC910 - the poll is next
        self, never_waits: NeverWaits
    ) -> None:
        """Handle a single queued request in this task, if handling it is certain not to wait.

        Passing the request to a handler would cost a pass of trio's scheduler. If several requests
        arrived, or every handler is busy, the requests go to handlers as usual.
        """
        channel = self._request_channel
        try:
            is_lone = not self._held and channel.has_lone(never_waits)
        except Exception:  # boundary: one request, which then goes to a handler as usual
            self._log.exception("could not determine whether a request has to wait")
            return
        if is_lone:
            # Not those after it, which may wait: sending the responses of a handler that is held
            # up polls the sockets of other processors.
            await handle_waiting(channel, self._shared.handler, self._log, 1)

    async def poll(self) -> PollResult:
        """Wake a handler for queued requests, then poll the selector."""
        channel = self._request_channel
        channel.call_handler()
        # Requests read beyond the queue's limit are held in memory, at most one per channel.
        room = RECEIVES_PER_TURN_MAX if self._held else channel.room
        if (
            self._looks_at_sockets
            and len(channel)
            and self.counts.in_flight == len(self.selector.channels)
        ):
            # All connections are muted, and the handlers have yet to run: they may do so in this
            # poll. Not twice in a row, since partial Sends and handshakes need the poller, too.
            room = 0
        self._looks_at_sockets = room > 0
        try:
            return await self.selector.poll(
                min(RECEIVES_PER_TURN_MAX, room), math.inf, self._has_work
            )
        except Exception as error:  # boundary: a failing poll never ends the loop (KAFKA-5607)
            self._shared.faults.note(f"a poll of processor {self.id}", error)
            await trio.lowlevel.checkpoint()
            return self.selector.take_result()

    def process_completed_receives(self, receives: list[tuple[Channel, Frame]]) -> None:
        """Queue each receive for the handlers, and mute its channel until the response is sent."""
        if receives:
            self._polled_ns = now_ns()
        for channel, frame in receives:
            try:
                self._hand_over(channel, frame)
            except Exception as error:  # boundary: one channel's step
                self._fail(channel, error)
        receives.clear()  # otherwise a waiting loop would keep the last turn's frames in memory

    def process_completed_sends(self, channels: list[Channel]) -> None:
        """Finish the requests whose responses have been sent, and unmute their channels."""
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
        """Account for closed channels, and release their memory and their guards."""
        for channel in channels:
            try:
                self._forget(channel)
            except Exception as error:  # boundary: one channel
                self._shared.faults.note("forgetting a connection", error)
        channels.clear()  # otherwise a waiting loop would keep the last ones in memory

    def close_excess_connection(self) -> None:
        """Close the least recently used connection if ``max.connections`` is exceeded."""
        if not self._shared.quotas.is_exceeded(self.endpoint.listener_name):
            return
        channel = self.selector.idle.least_recently_used()
        if channel is not None:
            self.selector.disconnect(channel, CloseReason.EXCESS_CONNECTION)
            # At once, otherwise each of the other processors would close one, too.
            channel.attachment.guard.release()
            self.selector.wakeup()  # there may be more to close

    # Parts of the steps.

    def _register(self, accepted: Accepted) -> None:
        sock, remote, guard = accepted
        self.counts.connections_created += 1
        try:
            id = ConnectionId.of(sock, remote, self.id, self._next_index)
            self._next_index = 0 if self._next_index == _INDEX_MAX else self._next_index + 1
            channel = self._builder.build(str(id), sock, id.remote_host)
            try:
                sock.getpeername()
            except OSError:  # the peer has disconnected
                if not channel.transport.has_unread():
                    raise  # and left nothing to be handled
            self.selector.register(channel)
        except Exception as error:  # boundary: one channel's step
            # Peers that disconnect early are routine: a storm of them must not fill the disk.
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
        # After everything that may fail: until then the lease is released with its channel.
        if channel.lease is not None:
            request.lease = channel.take_lease()
        if is_queued:
            return
        # The request channel is full: hold this request and stop reading, but keep sending.
        if not self._held:
            counts.request_queue_full += 1
            self.selector.pause_reading()
            self._request_channel.wake_when_free(self.selector.wakeup)
        self._held.append(request)

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
        """Complete the channel's request, and resume reading the channel unless it is throttled."""
        connection: Connection = channel.attachment
        request: Request | None = connection.request
        if request is None:
            raise LocalProtocolError(f"{channel.id} completed a Send without a request")
        if request.lease is not None:
            request.release()
        request.is_finished = True
        if channel.network_thread_ns:
            request.network_thread_ns, channel.network_thread_ns = channel.network_thread_ns, 0
        self._end_request(connection)
        channel.muting.handle(_RESPONSE_SENT)
        self.selector.unmute(channel)

    def _end_request(self, connection: Connection) -> None:
        connection.request = None
        self.counts.in_flight -= 1
        if self._drained is not None and not self.counts.in_flight:
            self._drained.set()

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
                    request.sent_ns = now_ns()  # its response was being sent (KAFKA-3489)
                    self._finished.append(request)
                if request.handled_ns:
                    request.return_lease()  # before that, a handler may still use the payload
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
