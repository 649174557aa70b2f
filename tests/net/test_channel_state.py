"""The life of a channel: what may follow what."""

from __future__ import annotations

from itertools import product

import pytest

from trionet.errors import LocalProtocolError
from trionet.net._channel_state import ChannelState, checked, first_state

S = ChannelState

FOLLOWING = {
    S.CONNECTING: {S.HANDSHAKING, S.AUTHENTICATING, S.READY},
    S.HANDSHAKING: {S.AUTHENTICATING, S.READY},
    S.AUTHENTICATING: {S.READY, S.FAILED, S.LINGERING},
    S.READY: {S.AUTHENTICATING, S.CLOSING},
    S.FAILED: {S.LINGERING},
    S.LINGERING: set[ChannelState](),
    S.CLOSING: set[ChannelState](),
    S.CLOSED: set[ChannelState](),
}


@pytest.mark.parametrize(("old", "new"), list(product(S, S)))
def test_what_may_follow_what(old: ChannelState, new: ChannelState) -> None:
    """CLOSED follows every state but itself, and nothing follows CLOSED."""
    is_end = new is S.CLOSED and old is not S.CLOSED
    if new in FOLLOWING[old] or is_end:
        assert new is checked(old, new)
    else:
        with pytest.raises(LocalProtocolError, match=f"from {old.name} to {new.name}"):
            checked(old, new)


@pytest.mark.parametrize(
    ("connects", "has_tls", "authenticates", "state"),
    [
        (True, True, True, S.CONNECTING),
        (True, False, False, S.CONNECTING),
        (False, True, True, S.HANDSHAKING),
        (False, True, False, S.HANDSHAKING),
        (False, False, True, S.AUTHENTICATING),
        (False, False, False, S.READY),
    ],
)
def test_a_channel_begins_in_the_first_state_that_it_needs(
    connects: bool, has_tls: bool, authenticates: bool, state: ChannelState
) -> None:
    assert state is first_state(connects=connects, has_tls=has_tls, authenticates=authenticates)
