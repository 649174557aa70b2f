"""What is closed later: in time, in order, and never too many."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import LocalProtocolError
from trionet.net._idle_expiry import DelayedCloses


def test_the_earliest_is_closed_first_however_late_it_came() -> None:
    """Kafka's heap has the latest on top, and the others wait for it."""
    closes: DelayedCloses[str] = DelayedCloses()
    closes.add("late", 3)
    closes.add("early", 1)
    closes.add("middle", 2)

    assert ["early"] == closes.pop_due(now=1.5)
    assert ["middle", "late"] == closes.pop_due(now=10)
    assert 0 == len(closes)


def test_what_ends_now_is_still_open() -> None:
    """Strictly before now, as Acceptor.closeThrottledConnections."""
    closes: DelayedCloses[str] = DelayedCloses()
    closes.add("a", 1)

    assert [] == closes.pop_due(now=1)
    assert ["a"] == closes.pop_due(now=math.nextafter(1, 2))


def test_a_loop_that_waits_for_the_next_time_does_not_spin() -> None:
    closes: DelayedCloses[str] = DelayedCloses()
    closes.add("b", 0.2)
    closes.add("a", 0.1)

    at = closes.next_check_at

    assert [] == closes.pop_due(now=math.nextafter(at, 0))
    assert ["a"] == closes.pop_due(now=at)
    assert 0.2 == pytest.approx(closes.next_check_at)


def test_what_its_peer_closed_meanwhile_is_not_closed_again() -> None:
    """A27: an earlier close cancels the delayed one."""
    closes: DelayedCloses[str] = DelayedCloses()
    closes.add("a", 1)
    closes.add("b", 2)
    closes.discard("a")
    closes.discard("a")

    assert 2 == pytest.approx(closes.next_check_at)
    assert ["b"] == closes.pop_due(now=10)
    assert math.inf == closes.next_check_at


def test_at_the_end_everything_is_handed_out() -> None:
    """P25: a server that stops leaves no socket open, whenever it was to be closed."""
    closes: DelayedCloses[str] = DelayedCloses()
    closes.add("b", 1e9)
    closes.add("a", 1)

    assert ["a", "b"] == closes.pop_all()
    assert [] == closes.pop_all()


def test_a_storm_cannot_hold_more_than_the_limit() -> None:
    closes: DelayedCloses[int] = DelayedCloses(count_max=3)

    made_room = [closes.add(number, ends_at) for number, ends_at in enumerate([5, 4, 6, 7, 1])]

    assert [None, None, None, 1, 4] == made_room
    assert [0, 2, 3] == closes.pop_all()


def test_nothing_waits_twice() -> None:
    closes: DelayedCloses[str] = DelayedCloses()
    closes.add("a", 1)

    with pytest.raises(LocalProtocolError):
        closes.add("a", 2)

    assert ["a"] == closes.pop_due(now=1.5)


@given(st.lists(st.floats(0, 100)), st.lists(st.floats(0, 100)))
def test_every_item_is_closed_at_the_first_look_after_its_end(
    ends: list[float], looks: list[float]
) -> None:
    closes: DelayedCloses[int] = DelayedCloses()
    for number, ends_at in enumerate(ends):
        closes.add(number, ends_at)

    closed_at = {number: now for now in sorted(looks) for number in closes.pop_due(now)}

    expected = {
        number: min(now for now in looks if now > ends_at)
        for number, ends_at in enumerate(ends)
        if any(now > ends_at for now in looks)
    }
    assert expected == closed_at
