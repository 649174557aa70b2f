"""What a connection is doing, from the state that it is in; without a request, why it is unread."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator

import pytest

from support.selecting import Selecting, selecting
from support.serving import listener
from trionet.metrics._request_times import RequestTimes
from trionet.net._channel import Channel
from trionet.net._channel_state import ChannelState, MuteEvent
from trionet.net._selector import Selector
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._transport import PlaintextTransport
from trionet.server._connection import Connection
from trionet.server._recorder import LoopFaults, Recording
from trionet.server._request_channel import NO_OP, Request, RequestChannel, ResponseQueue
from trionet.server.metrics._connection_phase import ConnectionPhase, phase_of


@pytest.fixture
async def rig() -> AsyncIterator[Selecting]:
    async with selecting("poller") as rig:
        yield rig


def connected(rig: Selecting) -> Channel:
    channel, _ = rig.connect()
    channel.attachment = Connection("127.0.0.1", 1, None, 0.0)
    return channel


async def test_a_connection_without_a_request_is_idle(rig: Selecting) -> None:
    assert ConnectionPhase.IDLE is phase_of(connected(rig), rig.selector)


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (ChannelState.HANDSHAKING, ConnectionPhase.HANDSHAKE),
        (ChannelState.AUTHENTICATING, ConnectionPhase.AUTHENTICATION),
    ],
)
async def test_a_connection_that_is_not_ready(
    rig: Selecting, state: ChannelState, phase: ConnectionPhase
) -> None:
    near, far = socket.socketpair()
    with near, far:
        channel = Channel("c", PlaintextTransport(near), 1000)
        channel.state = state

        assert phase is phase_of(channel, rig.selector)


async def test_a_frame_that_is_there_is_staged(rig: Selecting) -> None:
    channel = connected(rig)
    channel.staged.append(b"frame")

    assert ConnectionPhase.STAGED is phase_of(channel, rig.selector)


async def test_a_connection_without_memory_waits_for_it(rig: Selecting) -> None:
    channel = connected(rig)
    channel.muting.is_out_of_memory = True

    assert ConnectionPhase.NO_MEMORY is phase_of(channel, rig.selector)


async def test_a_connection_that_is_throttled_after_its_response(rig: Selecting) -> None:
    channel = connected(rig)
    channel.muting.mute()
    for event in (
        MuteEvent.REQUEST_RECEIVED,
        MuteEvent.THROTTLE_STARTED,
        MuteEvent.RESPONSE_SENT,
    ):
        channel.muting.handle(event)

    assert ConnectionPhase.THROTTLED is phase_of(channel, rig.selector)


async def test_nothing_is_read_while_the_request_queue_is_full(rig: Selecting) -> None:
    channel = connected(rig)
    rig.selector.pause_reading()
    assert ConnectionPhase.QUEUE_FULL is phase_of(channel, rig.selector)

    rig.selector.resume_reading()
    assert ConnectionPhase.IDLE is phase_of(channel, rig.selector)


async def test_a_connection_that_its_owner_has_muted(rig: Selecting) -> None:
    channel = connected(rig)
    rig.selector.mute(channel)

    assert ConnectionPhase.MUTED is phase_of(channel, rig.selector)


async def test_a_connection_whose_peer_has_gone_is_closing(rig: Selecting) -> None:
    channel, peer = rig.connect()
    channel.attachment = Connection("127.0.0.1", 1, None, 0.0)
    await peer.send_frames(b"a", b"b")
    await rig.receive(channel)
    rig.selector._steps.begin_closing(channel, CloseReason.PEER_RESET, "")

    assert ConnectionPhase.CLOSING is phase_of(channel, rig.selector)


async def test_a_request_goes_through_its_phases(rig: Selecting) -> None:
    """Those of Kafka's request times, in their order."""
    channel = connected(rig)
    selector: Selector = rig.selector
    recording = Recording(None, LoopFaults(logging.LoggerAdapter(logging.getLogger("test"))))
    responses = ResponseQueue(
        RequestChannel(1), 0, listener(), selector, recording, lambda may_poll: None
    )
    request = Request(responses, channel, b"payload", RequestTimes("Echo"), 1000)
    channel.attachment.request = request
    found = [phase_of(channel, selector)]
    request.taken_ns = 1100
    found.append(phase_of(channel, selector))
    request.handled_ns = 1200
    found.append(phase_of(channel, selector))
    request.response, request.responded_ns = NO_OP, 1300
    found.append(phase_of(channel, selector))
    request.picked_up_ns = 1400
    found.append(phase_of(channel, selector))

    assert [
        ConnectionPhase.REQUEST_QUEUE,
        ConnectionPhase.LOCAL,
        ConnectionPhase.REMOTE,
        ConnectionPhase.RESPONSE_QUEUE,
        ConnectionPhase.RESPONSE_SEND,
    ] == found
