"""Who is idle, and who was used least recently, without a clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from trionet.errors import LocalProtocolError
from trionet.net._idle_expiry import CORRECTIONS_PER_POLL_MAX, IdleExpiry


class Connection:
    """All that is known of a connection here."""

    def __init__(self, last_used_at: float) -> None:
        self.last_used_at = last_used_at

    def __repr__(self) -> str:
        return f"used at {self.last_used_at}"


def watching(
    idle_seconds_max: float, *last_used_at: float
) -> tuple[IdleExpiry[Connection], list[Connection]]:
    idle: IdleExpiry[Connection] = IdleExpiry(idle_seconds_max)
    connections = [Connection(time) for time in last_used_at]
    for connection in connections:
        idle.add(connection)
    return idle, connections


def test_one_idle_connection_a_poll_expires_the_least_recently_used_first() -> None:
    """X8: one per poll, in the order of last use."""
    idle, [late, early, middle] = watching(10, 3, 1, 2)
    expired = []

    while (connection := idle.poll(now=100)) is not None:
        idle.remove(connection)
        expired.append(connection)

    assert [early, middle, late] == expired
    assert math.inf == idle.next_check_at


def test_without_a_limit_nothing_expires() -> None:
    """X8: -1, which is an infinite time here, expires none."""
    idle, [connection] = watching(math.inf, 0)

    assert idle.poll(now=1e12) is None
    assert math.inf == idle.next_check_at
    assert connection is idle.least_recently_used()


def test_a_connection_that_was_never_used_expires_after_it_was_added() -> None:
    """S18: what never becomes readable is known from its registration on (KAFKA-7453)."""
    idle, [connection] = watching(600, 1000)

    assert idle.poll(now=1600) is None
    assert connection is idle.poll(now=1600.001)


def test_a_connection_that_is_used_does_not_expire() -> None:
    idle, [used, unused] = watching(10, 0, 0.5)

    for time in range(1, 11):
        used.last_used_at = time
        assert idle.poll(now=time) is None

    assert unused is idle.poll(now=11)
    idle.remove(unused)
    assert idle.poll(now=20) is None
    assert used is idle.poll(now=20.5)


def test_the_time_to_look_again_is_the_first_at_which_a_connection_is_idle() -> None:
    """A loop that waits until then and polls neither spins nor waits a second time."""
    idle, [connection] = watching(0.1, 0.3)

    at = idle.next_check_at

    assert idle.poll(now=math.nextafter(at, 0)) is None
    assert connection is idle.poll(now=at)


def test_the_time_to_look_again_moves_on_when_the_first_was_used() -> None:
    idle, [connection] = watching(10, 0)
    connection.last_used_at = 7
    assert 10 == pytest.approx(idle.next_check_at)

    assert idle.poll(now=idle.next_check_at) is None

    assert 17 == pytest.approx(idle.next_check_at)


def test_no_processors_to_watch_are_not_idle() -> None:
    idle, [] = watching(10)

    assert idle.poll(now=1e9) is None
    assert idle.least_recently_used() is None
    assert math.inf == idle.next_check_at


def test_a_connection_is_watched_once_and_forgotten_once() -> None:
    idle, [connection] = watching(10, 0)

    with pytest.raises(LocalProtocolError):
        idle.add(connection)
    idle.remove(connection)
    idle.remove(connection)

    assert math.inf == idle.next_check_at
    assert idle.poll(now=100) is None


def test_a_poll_after_a_storm_does_a_bounded_part_of_the_work() -> None:
    """When thousands that were made together are all in use, no turn looks at all of them."""
    idle, connections = watching(10, *[0] * (3 * CORRECTIONS_PER_POLL_MAX), 0)
    for connection in connections[:-1]:
        connection.last_used_at = 9
    [forgotten] = connections[-1:]

    found = [idle.poll(now=11) for _ in range(4)]

    assert [None, None, None, forgotten] == found
    assert idle.next_check_at < 11


@pytest.mark.parametrize("seconds", [-1, -0.001, math.nan])
def test_a_limit_is_a_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="allowed: 0 or more"):
        IdleExpiry(seconds)


class Model(RuleBasedStateMachine):
    """The same as asking every connection each time."""

    connections = Bundle("connections")
    idle_seconds_max = 10.0

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.idle: IdleExpiry[Connection] = IdleExpiry(self.idle_seconds_max)
        self.open: list[Connection] = []

    @rule(target=connections)
    def register(self) -> Connection:
        connection = Connection(self.now)
        self.idle.add(connection)
        self.open.append(connection)
        return connection

    @rule(connection=connections)
    def use(self, connection: Connection) -> None:
        connection.last_used_at = self.now

    @rule(connection=connections)
    def close(self, connection: Connection) -> None:
        self.idle.remove(connection)
        if connection in self.open:
            self.open.remove(connection)

    @rule(seconds=st.floats(0, 15))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def poll(self) -> None:
        expired = self.idle.poll(self.now)
        expected = [c for c in self.open if c.last_used_at + self.idle_seconds_max < self.now]
        if expired is None:
            assert [] == expected
        else:
            assert expired in expected
            assert min(c.last_used_at for c in self.open) == expired.last_used_at
            self.close(expired)

    @rule()
    def least_recently_used(self) -> None:
        connection = self.idle.least_recently_used()
        if connection is None:
            assert [] == self.open
        else:
            assert connection in self.open
            assert min(c.last_used_at for c in self.open) == connection.last_used_at

    @invariant()
    def no_idle_connection_is_looked_for_too_late(self) -> None:
        idle_from = min(
            (c.last_used_at + self.idle_seconds_max for c in self.open), default=math.inf
        )
        assert self.idle.next_check_at <= math.nextafter(idle_from, math.inf)


TestModel = Model.TestCase
