"""The channels of one processor (or client) and the explicit loop over their readiness.

(Kafka: org.apache.kafka.common.network.Selector.) ``await poll()`` makes all the progress that is
possible now, or waits in one place until some is, and returns what happened: completed receives,
completed sends, disconnected channels. Rules that hold for every poll:

* at most one receive of a channel is handed out, so that its owner can mute it before the next;
* while an unmuted channel has staged frames, the poll does not wait;
* an error in one channel's step closes that channel, with its reason, and no other.

One poll is one trio checkpoint. A processor's handlers run during it, so an empty poll is repeated
across two more checkpoints before the task parks: with one busy connection this saves a park and
its wake-up per request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import trio

from ..errors import InvalidReceiveError, LocalProtocolError
from .channel import Channel
from .close_reason import CloseReason
from .framing import Frame
from .readiness import HANGUP, READ, WRITE, Readiness
from .transmission import Send

logger = logging.getLogger("trionet.net.selector")

EMPTY_POLLS_BEFORE_PARK = 2


class PollResult:
    """What one poll achieved; valid until the next poll.

    Attributes:
        completed_receives: ``(channel, frame)``, at most one per channel.
        completed_sends: channels whose Send was written to its last byte during the poll.
        disconnected: channels that ended since the last poll, each once, except those that their
            owner closed with :meth:`Selector.close`.
    """

    __slots__ = ("completed_receives", "completed_sends", "disconnected")

    def __init__(self) -> None:
        self.completed_receives: list[tuple[Channel, Frame]] = []
        self.completed_sends: list[Channel] = []
        self.disconnected: list[Channel] = []

    @property
    def is_empty(self) -> bool:
        return not (self.completed_receives or self.completed_sends or self.disconnected)


class Selector:
    """A set of channels over one readiness backend.

    Args:
        readiness: where the sockets are registered; owned by the caller.
        on_error: told of unexpected errors in a channel's step, for the log; the channel is
            closed in any case.
    """

    def __init__(
        self,
        readiness: Readiness,
        on_error: Callable[[Channel, Exception], None] | None = None,
    ) -> None:
        self._readiness = readiness
        self._on_error = on_error or _log_unexpected
        self._by_fd: dict[int, Channel] = {}
        self._by_id: dict[str, Channel] = {}
        self._with_staged: dict[Channel, None] = {}
        self._result = PollResult()  # being filled: by poll, and by send and close between polls
        self._empty_polls = 0
        self._is_woken = False
        self._is_paused = False
        self._paused_reads: dict[Channel, None] = {}
        self._bytes_received_by_closed = 0
        self._bytes_sent_by_closed = 0

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def bytes_received(self) -> int:
        """Bytes read from the sockets of all channels, past and present."""
        return self._bytes_received_by_closed + sum(c.bytes_received for c in self._by_fd.values())

    @property
    def bytes_sent(self) -> int:
        return self._bytes_sent_by_closed + sum(c.bytes_sent for c in self._by_fd.values())

    @property
    def channels(self) -> Iterable[Channel]:
        return self._by_id.values()

    def channel(self, id: str) -> Channel | None:
        return self._by_id.get(id)

    def register(self, channel: Channel) -> None:
        """Start reading from a channel.

        Raises:
            LocalProtocolError: its id is in use (Kafka: KAFKA-7453).
            OSError: its socket cannot be watched.
        """
        if channel.id in self._by_id:
            raise LocalProtocolError(f"a channel with id {channel.id} is registered already")
        self._readiness.register(channel.fd, READ)
        channel.interest = READ
        self._by_fd[channel.fd] = channel
        self._by_id[channel.id] = channel

    def send(self, channel: Channel, send: Send) -> bool:
        """Begin to send; what the socket takes at once is written at once.

        Returns:
            Whether the Send is complete already. If not, a later poll tells when it is, or that
            the channel failed.

        Raises:
            LocalProtocolError: the channel is closed, or has a Send in progress, or this Send was
                written before; an open channel is closed for it.
        """
        if channel.close_reason is not None:
            raise LocalProtocolError(f"channel {channel.id} is closed")
        try:
            if channel.begin_send(send):
                return True
            self._watch(channel, channel.interest | WRITE)
        except LocalProtocolError as error:
            is_second = channel.send is not None
            reason = CloseReason.SECOND_SEND if is_second else CloseReason.ERROR
            self._disconnect(channel, reason, str(error))
            raise
        except OSError as error:
            self._disconnect(channel, CloseReason.SEND_FAILED, str(error))
        except Exception as error:  # boundary: one channel's step
            self._disconnect_for(channel, error)
        return False

    def mute(self, channel: Channel) -> None:
        """Stop reading from a channel. The poller is told only if data arrives meanwhile."""
        channel.is_muted = True

    def unmute(self, channel: Channel) -> None:
        """Read again; a channel that is closed stays as it is."""
        if not channel.is_muted or channel.close_reason is not None:
            return
        channel.is_muted = False
        if channel.has_staged:
            self._with_staged[channel] = None
        if not channel.interest & READ:
            self._watch(channel, channel.interest | READ)

    def pause_reading(self) -> None:
        """Hand out and read nothing more, for any channel; Sends go on (design 3.3)."""
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        paused, self._paused_reads = self._paused_reads, {}
        for channel in paused:
            if not channel.is_muted:
                try:
                    self._watch(channel, channel.interest | READ)
                except Exception as error:  # boundary: one channel's step
                    self._disconnect_for(channel, error)

    def close(
        self, channel: Channel, reason: CloseReason = CloseReason.LOCAL_CLOSE, detail: str = ""
    ) -> None:
        """Close a channel now. It does not show in ``disconnected``: the owner knows."""
        if channel.is_open:
            self._remove(channel, reason, detail)

    def disconnect(self, channel: Channel, reason: CloseReason, detail: str = "") -> None:
        """Close a channel now and report it in ``disconnected`` of the next poll."""
        if channel.is_open:
            self._disconnect(channel, reason, detail)

    def close_all(self, reason: CloseReason) -> list[Channel]:
        """Close every channel.

        Returns:
            Those that no poll has told of: the ones closed now, and before them those that ended
            since the last poll.
        """
        for channel in list(self._by_id.values()):
            self._disconnect(channel, reason)
        closed, self._result.disconnected = self._result.disconnected, []
        return closed

    def wakeup(self) -> None:
        """Make the poll under way, or the next one, return without waiting."""
        self._is_woken = True
        self._readiness.wakeup()

    async def poll(self) -> PollResult:
        """One turn: hand out, read and write what can be, or wait until something can.

        Cancellation loses nothing: frames that were read stay staged, results not yet returned
        are returned by the next poll.
        """
        await trio.lowlevel.checkpoint()
        readiness = self._readiness
        events = readiness.poll()
        if events or not self._must_wait():
            self._empty_polls = 0
        elif self._empty_polls < EMPTY_POLLS_BEFORE_PARK:
            self._empty_polls += 1
        else:
            self._empty_polls = 0
            await readiness.park()
            events = readiness.poll()
        self._is_woken = False
        staged: dict[Channel, None] = {}
        if self._with_staged and not self._is_paused:
            staged, self._with_staged = self._with_staged, {}
        by_fd = self._by_fd
        reads = 0 if self._is_paused else READ
        for fd, bits in events:
            channel = by_fd.get(fd)
            if channel is None or (staged and channel in staged):
                continue
            if bits == reads and not channel.is_muted:
                self._receive(channel)
            else:
                self._on_event(channel, bits)
        for channel in staged:
            if not channel.is_muted:
                self._take_staged(channel)
        result, self._result = self._result, PollResult()
        return result

    def _must_wait(self) -> bool:
        if self._is_woken or not self._result.is_empty:
            return False
        return self._is_paused or not self._with_staged

    def _receive(self, channel: Channel) -> None:
        """Take one frame of a channel from its socket, if one is there."""
        try:
            frame = channel.receive()
        except BlockingIOError:
            return
        except Exception as error:  # boundary: one channel's step
            self._disconnect_for(channel, error)
            return
        if frame is not None:
            self._result.completed_receives.append((channel, frame))
            if channel.has_staged:
                self._with_staged[channel] = None

    def _take_staged(self, channel: Channel) -> None:
        """Take one frame of those that came with an earlier one."""
        try:
            frame = channel.take_staged()
        except InvalidReceiveError as error:
            self._disconnect_for(channel, error)
            return
        if frame is not None:
            self._result.completed_receives.append((channel, frame))
        if channel.has_staged:
            self._with_staged[channel] = None

    def _on_event(self, channel: Channel, bits: int) -> None:
        try:
            if bits & WRITE and channel.send is not None:
                self._write(channel)
            if bits & (READ | HANGUP):
                if channel.is_muted or self._is_paused:
                    self._on_unwanted_read(channel, bits)
                else:
                    self._receive(channel)
        except Exception as error:  # boundary: one channel's step
            self._disconnect_for(channel, error)

    def _on_unwanted_read(self, channel: Channel, bits: int) -> None:
        """Data, or the end, of a channel that is not being read.

        A hang-up is reported whatever the interest, so the channel must go now or the loop would
        spin on it; otherwise the interest in reading is dropped until the channel is read again.
        """
        if bits & HANGUP:
            self._disconnect(channel, CloseReason.PEER_RESET, "while no read was due")
            return
        if self._is_paused:
            self._paused_reads[channel] = None
        self._watch(channel, channel.interest & ~READ)

    def _write(self, channel: Channel) -> None:
        if channel.write():
            self._result.completed_sends.append(channel)
            self._watch(channel, channel.interest & ~WRITE)

    def _disconnect_for(self, channel: Channel, error: Exception) -> None:
        match error:
            case EOFError():
                self._disconnect(channel, channel.end_of_stream_reason)
            case InvalidReceiveError():
                self._disconnect(channel, CloseReason.INVALID_RECEIVE, str(error))
            case OSError() if channel.send is not None:
                self._disconnect(channel, CloseReason.SEND_FAILED, str(error))
            case OSError():
                self._disconnect(channel, CloseReason.PEER_RESET, str(error))
            case _:
                self._on_error(channel, error)
                self._disconnect(channel, CloseReason.ERROR, repr(error))

    def _watch(self, channel: Channel, interest: int) -> None:
        channel.interest = interest
        self._readiness.modify(channel.fd, interest)

    def _disconnect(self, channel: Channel, reason: CloseReason, detail: str = "") -> None:
        self._result.disconnected.append(channel)
        try:
            self._remove(channel, reason, detail)
        except Exception as error:  # boundary: closing one channel
            self._on_error(channel, error)

    def _remove(self, channel: Channel, reason: CloseReason, detail: str) -> None:
        channel.close_reason = reason
        channel.close_detail = detail
        channel.staged.clear()
        self._bytes_received_by_closed += channel.bytes_received
        self._bytes_sent_by_closed += channel.bytes_sent
        self._with_staged.pop(channel, None)
        self._paused_reads.pop(channel, None)
        del self._by_id[channel.id]
        del self._by_fd[channel.fd]
        try:
            self._readiness.unregister(channel.fd)
        finally:
            channel.transport.close()


def _log_unexpected(channel: Channel, error: Exception) -> None:
    logger.warning("unexpected error on %s; closing it", channel.id, exc_info=error)
