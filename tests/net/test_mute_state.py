"""Every event in every state: where it leads, or that it cannot happen."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import LocalProtocolError
from trionet.net.mute_state import MuteEvent, MuteState, after, after_mute, after_unmute

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


@pytest.mark.parametrize(("state", "event"), list(product(MuteState, MuteEvent)))
def test_six_steps_are_possible_and_no_other(state: MuteState, event: MuteEvent) -> None:
    expected = STEPS.get((state, event))

    if expected is not None:
        assert expected is after(state, event)
    else:
        with pytest.raises(LocalProtocolError, match=rf"{event.name}.* {state.name}$"):
            after(state, event)


def run(*events: MuteEvent) -> MuteState:
    """What becomes of a channel that is muted for a request, and then wanted again."""
    state = after_mute(NOT_MUTED)
    for event in events:
        state = after(state, event)
    return after_unmute(state)


def test_an_answered_request_lets_the_channel_be_read_again() -> None:
    assert NOT_MUTED is run(RECEIVED, SENT)


def test_an_answer_that_was_sent_while_throttled_leaves_the_channel_throttled() -> None:
    """P16, P18: it stays MUTED_AND_THROTTLED, for a response and for a no-op alike."""
    assert THROTTLED is run(RECEIVED, STARTED, SENT)


def test_an_answer_that_was_sent_after_the_throttle_unmutes() -> None:
    """P17, P18: it ends NOT_MUTED, for a response and for a no-op alike."""
    assert NOT_MUTED is run(RECEIVED, STARTED, ENDED, SENT)


def test_the_end_of_the_throttle_unmutes_when_the_answer_has_left() -> None:
    assert NOT_MUTED is run(RECEIVED, STARTED, SENT, ENDED)


def test_a_second_request_can_be_throttled_as_the_first() -> None:
    assert NOT_MUTED is run(RECEIVED, STARTED, SENT, ENDED, RECEIVED, STARTED, ENDED, SENT)


@pytest.mark.parametrize("state", [PENDING, THROTTLED, BOTH])
def test_only_a_channel_that_is_merely_muted_can_be_unmuted(state: MuteState) -> None:
    assert state is after_unmute(state)
    assert NOT_MUTED is after_unmute(MUTED)
    assert NOT_MUTED is after_unmute(NOT_MUTED)


@pytest.mark.parametrize("state", [MUTED, PENDING, THROTTLED, BOTH])
def test_muting_again_changes_nothing(state: MuteState) -> None:
    assert state is after_mute(state)
    assert MUTED is after_mute(NOT_MUTED)


@given(st.lists(st.sampled_from(MuteEvent)))
def test_a_channel_waits_for_exactly_what_has_begun_and_not_ended(events: list[MuteEvent]) -> None:
    """The names of the states say what is open; no order of events makes them lie."""
    state, pending, throttled = MUTED, False, False
    for event in events:
        try:
            state = after(state, event)
        except LocalProtocolError:
            continue
        pending = event is RECEIVED or (pending and event is not SENT)
        throttled = event is STARTED or (throttled and event is not ENDED)

    assert pending == ("RESPONSE_PENDING" in state.name)
    assert throttled == ("THROTTLED" in state.name)
