"""What a connection is doing, from the state that it is in."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from trionet.metrics.request_times import RequestTimes
from trionet.net.channel import Channel
from trionet.net.mute_state import MuteState
from trionet.net.transport import PlaintextTransport
from trionet.server.connection import Connection
from trionet.server.connection_phase import ConnectionPhase, phase_of
from trionet.server.request_channel import NO_OP, Request, RequestChannel, ResponseQueue


@pytest.fixture
def channel() -> Iterator[Channel]:
    near, far = socket.socketpair()
    with near, far:
        channel = Channel("c", PlaintextTransport(near), 1000)
        channel.attachment = Connection("127.0.0.1", 1, None, 0.0)
        yield channel


def test_who_asks_for_nothing_is_idle(channel: Channel) -> None:
    assert ConnectionPhase.IDLE is phase_of(channel)


def test_who_has_not_said_who_it_is_is_asked(channel: Channel) -> None:
    channel.is_ready = False
    assert ConnectionPhase.AUTHENTICATION is phase_of(channel)

    channel.is_shaking_hands = True
    assert ConnectionPhase.HANDSHAKE is phase_of(channel)


def test_a_frame_that_is_there_is_staged(channel: Channel) -> None:
    channel.staged.append(b"frame")

    assert ConnectionPhase.STAGED is phase_of(channel)


def test_who_lacks_memory_waits_for_it(channel: Channel) -> None:
    channel.is_out_of_memory = True

    assert ConnectionPhase.NO_MEMORY is phase_of(channel)


def test_who_is_throttled_behind_its_answer_is_throttled(channel: Channel) -> None:
    channel.attachment.mute_state = MuteState.MUTED_AND_THROTTLED

    assert ConnectionPhase.THROTTLED is phase_of(channel)


def test_a_request_goes_through_its_phases(channel: Channel) -> None:
    """Those of Kafka's request times, in their order."""
    nowhere: Any = None  # no processor is asked for anything
    responses = ResponseQueue(RequestChannel(1), nowhere)
    request = Request(responses, channel, b"payload", RequestTimes("Echo"), 1000)
    channel.attachment.request = request
    found = [phase_of(channel)]
    request.taken_ns = 1100
    found.append(phase_of(channel))
    request.handled_ns = 1200
    found.append(phase_of(channel))
    request.response, request.answered_ns = NO_OP, 1300
    found.append(phase_of(channel))
    request.picked_up_ns = 1400
    found.append(phase_of(channel))

    assert [
        ConnectionPhase.REQUEST_QUEUE,
        ConnectionPhase.LOCAL,
        ConnectionPhase.REMOTE,
        ConnectionPhase.RESPONSE_QUEUE,
        ConnectionPhase.RESPONSE_SEND,
    ] == found
