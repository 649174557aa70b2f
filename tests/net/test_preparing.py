"""What is decided about channels that are not ready yet, without a socket being looked at."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from trionet._util._wall_clock import now_ms
from trionet.net import _preparing as preparing
from trionet.net._authenticator import Progress, Step
from trionet.net._channel import Channel
from trionet.net._channel_state import ChannelState
from trionet.net._preparing import Preparing
from trionet.net._selector_counters import SelectorCounters
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._transport import PlaintextTransport


class OneFrame:
    """An authenticator that is content with any frame."""

    frame_bytes_max = 100
    is_complete = False
    is_reauthenticating = False
    can_reauthenticate = False
    reauthentication_seconds = 0.0
    principal: Any = None

    def receive(self, *_: object) -> Step:
        self.is_complete = True
        return Step(Progress.AUTHENTICATED)


@pytest.fixture
def channels() -> Iterator[list[Channel]]:
    with ExitStack() as opened:
        made = []
        for name in "abc":
            near, _far = (opened.enter_context(each) for each in socket.socketpair())
            content: Any = OneFrame()
            made.append(Channel(name, PlaintextTransport(near), 100, authenticator=content))
        yield made


async def test_a_channel_that_was_displaced_and_is_ready_in_the_same_turn_stays(
    monkeypatch: pytest.MonkeyPatch, channels: list[Channel]
) -> None:
    """And those that are too late are closed all the same."""
    monkeypatch.setattr(preparing, "PREPARING_MAX", 1)
    waiting = Preparing(10.0, SelectorCounters(), now_ms)
    first, second, third = channels
    for channel in channels:
        waiting.begin(channel, 0.0)

    decision = waiting.receive(first, b"proof", 1.0)

    assert ChannelState.READY is decision.state
    [(displaced, ending)] = waiting.due(1.0)
    assert (second, CloseReason.AUTHENTICATION_TIMEOUT) == (displaced, ending.close_reason)
    [(late, ending)] = waiting.due(10.1)
    assert (third, "authentication took too long") == (late, ending.detail)
