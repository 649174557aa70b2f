"""Every event in every state: where it leads, or that it cannot happen."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import LocalProtocolError
from trionet.net._channel_state import MuteEvent, MuteState, Muting, Unread

NOT_MUTED = MuteState.NOT_MUTED
MUTED = MuteState.MUTED
PENDING = MuteState.MUTED_AND_RESPONSE_PENDING
THROTTLED = MuteState.MUTED_AND_THROTTLED
BOTH = MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING

RECEIVED = MuteEvent.REQUEST_RECEIVED
SENT = MuteEvent.RESPONSE_SENT
STARTED = MuteEvent.THROTTLE_STARTED
ENDED = MuteEvent.THROTTLE_ENDED

STEPS = {
    (MUTED, RECEIVED): PENDING,
    (PENDING, STARTED): BOTH,
    (PENDING, SENT): MUTED,
    (BOTH, SENT): THROTTLED,
    (THROTTLED, ENDED): MUTED,
    (BOTH, ENDED): PENDING,
}


def muting(state: MuteState) -> Muting:
    """That of a channel in this state."""
    made = Muting()
    made.state = state
    return made


@pytest.mark.parametrize(("state", "event"), list(product(MuteState, MuteEvent)))
def test_six_steps_are_possible_and_no_other(state: MuteState, event: MuteEvent) -> None:
    expected = STEPS.get((state, event))
    channel = muting(state)

    if expected is not None:
        channel.handle(event)
        assert expected is channel.state
    else:
        with pytest.raises(LocalProtocolError, match=rf"{event.name}.* {state.name}$"):
            channel.handle(event)
        assert state is channel.state


def run(*events: MuteEvent) -> MuteState:
    """What becomes of a channel that is muted for a request, and then wanted again."""
    channel = Muting()
    channel.mute()
    for event in events:
        channel.handle(event)
    channel.unmute()
    return channel.state


def test_a_response_that_was_sent_lets_the_channel_be_read_again() -> None:
    assert NOT_MUTED is run(RECEIVED, SENT)


def test_a_response_that_was_sent_while_throttled_leaves_the_channel_throttled() -> None:
    """P16, P18: it stays MUTED_AND_THROTTLED, for a response and for a no-op alike."""
    assert THROTTLED is run(RECEIVED, STARTED, SENT)


def test_a_response_that_was_sent_after_the_throttle_unmutes() -> None:
    """P17, P18: it ends NOT_MUTED, for a response and for a no-op alike."""
    assert NOT_MUTED is run(RECEIVED, STARTED, ENDED, SENT)


def test_the_end_of_the_throttle_unmutes_when_the_response_has_left() -> None:
    assert NOT_MUTED is run(RECEIVED, STARTED, SENT, ENDED)


def test_a_second_request_can_be_throttled_as_the_first() -> None:
    assert NOT_MUTED is run(RECEIVED, STARTED, SENT, ENDED, RECEIVED, STARTED, ENDED, SENT)


@pytest.mark.parametrize("state", MuteState)
def test_only_a_channel_that_is_merely_muted_can_be_unmuted(state: MuteState) -> None:
    channel = muting(state)

    assert (state is MUTED) is channel.unmute()
    assert (NOT_MUTED if state is MUTED else state) is channel.state


@pytest.mark.parametrize("state", MuteState)
def test_a_channel_that_is_muted_in_any_way_stays_so_when_it_is_muted(state: MuteState) -> None:
    channel = muting(state)
    channel.mute()
    assert (MUTED if state is NOT_MUTED else state) is channel.state


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (NOT_MUTED, None),
        (MUTED, Unread.MUTED),
        (PENDING, Unread.RESPONSE_PENDING),
        (BOTH, Unread.RESPONSE_PENDING),
        (THROTTLED, Unread.THROTTLED),
    ],
)
def test_a_mute_state_says_why_the_channel_is_not_read(
    state: MuteState, why: Unread | None
) -> None:
    """Want of memory is the reason only where there is no other: it ends by itself."""
    channel = muting(state)
    assert why is channel.why
    channel.is_out_of_memory = True
    assert (why or Unread.NO_MEMORY) is channel.why
    channel.is_out_of_memory = False
    assert why is channel.why


@given(st.lists(st.sampled_from([*MuteEvent, "mute", "unmute"]), max_size=30))
def test_a_channel_with_a_request_out_or_a_throttle_is_never_read(
    events: list[Any],
) -> None:
    """In whatever order things happen; a model of two numbers agrees with the five states."""
    channel, pending, throttled = Muting(), False, False
    for event in events:
        before = channel.state
        try:
            if event == "mute":
                channel.mute()
            elif event == "unmute":
                channel.unmute()
            else:
                channel.handle(event)
        except LocalProtocolError:
            assert before is channel.state
            continue
        pending = event == RECEIVED or (pending and event != SENT)
        throttled = event == STARTED or (throttled and event != ENDED)
        assert channel.is_muted or not (pending or throttled)
        assert pending is (channel.state in (PENDING, BOTH))
        assert throttled is (channel.state in (THROTTLED, BOTH))
