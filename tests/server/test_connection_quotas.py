"""Numbers of connections: of an address, a listener, the server; and who makes room for whom."""

from __future__ import annotations

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from trionet.errors import LocalProtocolError
from trionet.server.quotas._connection_limits import ListenerLimits, ServerLimits
from trionet.server.quotas._connection_quotas import (
    Admission,
    ConnectionGuard,
    ConnectionQuotas,
    Delayed,
    Rejected,
    RejectReason,
)

LISTENERS = ("EXTERNAL", "ADMIN", "REPLICATION")


class Quotas(ConnectionQuotas):
    """Quotas of three listeners, the last one protected, that note what they ask for."""

    def __init__(
        self, limits: ServerLimits | None = None, listener_limits: ListenerLimits | None = None
    ) -> None:
        self.asked: list[str] = []
        super().__init__(
            limits,
            protected_listener="REPLICATION",
            on_slot_free=lambda: self.asked.append("retry"),
            on_exceeded=lambda: self.asked.append("make room"),
        )
        for name in LISTENERS:
            self.add_listener(name, listener_limits)
        self.asked.clear()


def admitted(admission: Admission) -> ConnectionGuard:
    assert isinstance(admission, ConnectionGuard)
    return admission


def rejected(admission: Admission) -> Rejected:
    assert isinstance(admission, Rejected)
    return admission


def delayed(admission: Admission) -> Delayed:
    assert isinstance(admission, Delayed)
    return admission


def address(number: int) -> str:
    return f"10.0.{number >> 8}.{number & 255}"


def fill(quotas: ConnectionQuotas, listener: str, count: int) -> list[ConnectionGuard]:
    """So many connections of as many addresses, in one moment."""
    return [admitted(quotas.try_admit(listener, address(number), now=0)) for number in range(count)]


def test_an_unknown_listener_is_an_error() -> None:
    """Q1: also one that was removed."""
    quotas = ConnectionQuotas()
    with pytest.raises(LocalProtocolError, match="listener EXTERNAL has no quotas"):
        quotas.try_admit("EXTERNAL", "10.0.0.1", now=0)
    with pytest.raises(LocalProtocolError, match="listener EXTERNAL has no quotas"):
        quotas.remove_listener("EXTERNAL")

    quotas.add_listener("EXTERNAL")
    guard = admitted(quotas.try_admit("EXTERNAL", "10.0.0.1", now=0))
    quotas.remove_listener("EXTERNAL")
    with pytest.raises(LocalProtocolError, match="listener EXTERNAL has no quotas"):
        quotas.try_admit("EXTERNAL", "10.0.0.1", now=0)

    # Its connections close later than the listener, and are counted back (KAFKA-1577).
    assert 1 == quotas.total
    guard.release()
    assert 0 == quotas.total


def test_a_listener_is_added_once() -> None:
    quotas = Quotas()

    with pytest.raises(LocalProtocolError, match="listener ADMIN already has quotas"):
        quotas.add_listener("ADMIN")

    assert list(LISTENERS) == [quota.name for quota in quotas.listeners]


def test_without_limits_everyone_connects() -> None:
    """Q3: ten thousand connections of one address to each listener; one less is 9,999."""
    quotas = Quotas()

    for listener in LISTENERS:
        guards = [admitted(quotas.try_admit(listener, "10.0.0.1", now=0)) for _ in range(10_000)]
        guards[0].release()
        assert 9_999 == quotas.counts.by_listener[listener]
        assert not quotas.is_exceeded(listener)

    assert 29_997 == quotas.total == quotas.counts.by_address["10.0.0.1"]
    assert {0.0} == {quota.blocked_seconds for quota in quotas.listeners}


def test_an_address_has_no_more_connections_than_its_limit() -> None:
    """Q4: with a limit of 17 the next two are refused, and count until they are closed."""
    quotas = Quotas(ServerLimits(connections_per_ip_max=17))
    guards = [admitted(quotas.try_admit("EXTERNAL", "10.0.0.1", now=0)) for _ in range(17)]

    for _ in range(2):
        refused = rejected(quotas.try_admit("EXTERNAL", "10.0.0.1", now=0))
        assert refused.guard is not None
        guards.append(refused.guard)
        assert RejectReason.TOO_MANY_CONNECTIONS is refused.reason
        assert ("10.0.0.1", 17, 0) == (refused.address, refused.limit, refused.close_after)
    assert 19 == quotas.counts.by_address["10.0.0.1"]
    admitted(quotas.try_admit("EXTERNAL", "10.0.0.2", now=0))

    for _ in range(4):
        guards.pop().release()
    assert 15 == quotas.counts.by_address["10.0.0.1"]
    for _ in range(2):
        admitted(quotas.try_admit("EXTERNAL", "10.0.0.1", now=0))

    assert 17 == quotas.counts.by_address["10.0.0.1"]
    assert 2 == quotas.listener("EXTERNAL").rejected


def test_a_limit_of_0_with_an_override_lets_one_address_in() -> None:
    """P21: five connections for this address, none for any other."""
    limits = ServerLimits(connections_per_ip_max=0, overrides={"127.0.0.1": 5})
    quotas = Quotas(limits)

    for host in ["127.0.0.1", "::ffff:127.0.0.1"] * 2 + ["127.0.0.1"]:
        admitted(quotas.try_admit("EXTERNAL", host, now=0))

    assert 5 == rejected(quotas.try_admit("EXTERNAL", "::ffff:127.0.0.1", now=0)).limit
    assert 0 == rejected(quotas.try_admit("EXTERNAL", "::1", now=0)).limit
    assert 6 == quotas.counts.by_address["127.0.0.1"]


def test_an_override_raises_the_limit_of_its_address() -> None:
    """P22: the others keep the general limit."""
    quotas = Quotas(ServerLimits(connections_per_ip_max=2, overrides={"10.0.0.1": 3}))

    for host, limit in [("10.0.0.1", 3), ("10.0.0.2", 2)]:
        for _ in range(limit):
            admitted(quotas.try_admit("EXTERNAL", host, now=0))
        assert limit == rejected(quotas.try_admit("EXTERNAL", host, now=0)).limit


def test_a_full_server_makes_the_next_connection_wait_for_one_to_close() -> None:
    """Q5: 800 pass and exceed nothing; the 801st waits, and its wait is measured."""
    quotas = Quotas(ServerLimits(connections_max=800))
    guards = fill(quotas, "EXTERNAL", 400) + fill(quotas, "ADMIN", 400)
    assert not any(quotas.is_exceeded(listener) for listener in LISTENERS)

    waiting = delayed(quotas.try_admit("EXTERNAL", "10.1.0.1", now=10))
    assert math.inf == waiting.seconds
    assert 800 == quotas.total
    assert [] == quotas.asked

    guards[0].release()
    assert ["retry"] == quotas.asked
    admitted(quotas.retry(waiting, now=12.5))

    assert 800 == quotas.total
    assert 2.5 == quotas.listener("EXTERNAL").blocked_seconds
    assert 0 == quotas.listener("ADMIN").blocked_seconds


def test_the_protected_listener_connects_to_a_full_server() -> None:
    """Q6: that exceeds the limit; who waits then needs as many closes as there are too many."""
    quotas = Quotas(ServerLimits(connections_max=800))
    guards = fill(quotas, "EXTERNAL", 800)

    fill(quotas, "REPLICATION", 2)
    assert ["make room", "make room"] == quotas.asked
    assert [True, True, False] == [quotas.is_exceeded(listener) for listener in LISTENERS]

    admission: Admission = quotas.try_admit("ADMIN", "10.1.0.1", now=0)
    for _ in range(3):
        waiting = delayed(admission)
        guards.pop().release()
        admission = quotas.retry(waiting, now=0)
    admitted(admission)

    assert 800 == quotas.total
    assert not quotas.is_exceeded("EXTERNAL")


def test_the_listener_between_brokers_is_not_protected_when_it_is_the_only_one() -> None:
    quotas = ConnectionQuotas(ServerLimits(connections_max=1), protected_listener="PLAINTEXT")
    quotas.add_listener("PLAINTEXT")
    fill(quotas, "PLAINTEXT", 1)

    delayed(quotas.try_admit("PLAINTEXT", "10.0.0.1", now=0))


def test_a_full_listener_waits_for_itself_only() -> None:
    """Q7: 200 each, for the protected listener too; one close lets one in."""
    quotas = Quotas(listener_limits=ListenerLimits(connections_max=200))
    guards = {listener: fill(quotas, listener, 200) for listener in LISTENERS}

    for listener in LISTENERS:
        waiting = delayed(quotas.try_admit(listener, "10.1.0.1", now=0))
        guards[LISTENERS[LISTENERS.index(listener) - 1]].pop().release()
        assert waiting == quotas.retry(waiting, now=0)
        guards[listener].pop().release()
        admitted(quotas.retry(waiting, now=0))
        fill(quotas, LISTENERS[LISTENERS.index(listener) - 1], 1)

    assert {200} == {quotas.counts.by_listener[listener] for listener in LISTENERS}


def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    quotas = Quotas(ServerLimits(connections_max=1))
    guard = fill(quotas, "EXTERNAL", 1)[0]

    delayed(quotas.try_admit("EXTERNAL", "10.1.0.1", now=0))
    guard.release()

    assert 0 == quotas.total
    admitted(quotas.try_admit("EXTERNAL", "10.1.0.1", now=0))


def test_limits_change_while_the_server_runs_and_waiting_tasks_learn_of_it() -> None:
    """Q20: the numbers of connections; KIP-308."""
    quotas = Quotas(ServerLimits(connections_max=5, connections_per_ip_max=5))
    fill(quotas, "EXTERNAL", 5)
    waiting = delayed(quotas.try_admit("EXTERNAL", "10.1.0.1", now=0))

    quotas.set_limits(ServerLimits(connections_max=6))
    assert ["retry"] == quotas.asked
    admitted(quotas.retry(waiting, now=1))

    quotas.set_listener_limits("EXTERNAL", ListenerLimits(connections_max=6))
    quotas.set_limits(ServerLimits(connections_per_ip_max=1, overrides={"10.0.0.1": 7}))
    waiting = delayed(quotas.try_admit("EXTERNAL", "10.0.0.0", now=0))
    quotas.set_listener_limits("EXTERNAL", ListenerLimits(connections_max=9))
    assert 1 == rejected(quotas.retry(waiting, now=1)).limit
    admitted(quotas.try_admit("EXTERNAL", "10.0.0.1", now=0))


def test_a_lower_limit_asks_for_room() -> None:
    quotas = Quotas()
    guards = fill(quotas, "EXTERNAL", 3)
    assert not quotas.is_exceeded("EXTERNAL")

    quotas.set_limits(ServerLimits(connections_max=2))

    assert "make room" in quotas.asked
    assert quotas.is_exceeded("EXTERNAL")
    guards.pop().release()
    assert not quotas.is_exceeded("EXTERNAL")


class Model(RuleBasedStateMachine):
    """Whatever connects and closes, the counts are those of the connections that are open."""

    guards = Bundle("guards")
    connections_max = 6
    per_listener_max = 4
    per_ip_max = 3

    def __init__(self) -> None:
        super().__init__()
        self.quotas = Quotas(
            ServerLimits(
                connections_max=self.connections_max, connections_per_ip_max=self.per_ip_max
            ),
            ListenerLimits(connections_max=self.per_listener_max),
        )
        self.open: list[ConnectionGuard] = []

    @rule(target=guards, listener=st.sampled_from(LISTENERS), number=st.integers(0, 3))
    def connect(self, listener: str, number: int) -> ConnectionGuard | None:
        before = [guard.listener for guard in self.open]
        is_full = before.count(listener) >= self.per_listener_max or (
            len(before) >= self.connections_max and listener != "REPLICATION"
        )
        known = [guard.address for guard in self.open].count(address(number))
        admission = self.quotas.try_admit(listener, address(number), now=0)
        assert is_full == isinstance(admission, Delayed)
        if isinstance(admission, Delayed):
            return None
        assert (known >= self.per_ip_max) == isinstance(admission, Rejected)
        guard = admission.guard if isinstance(admission, Rejected) else admission
        assert guard is not None
        self.open.append(guard)
        return guard

    @rule(guard=consumes(guards), times=st.integers(1, 3))
    def close(self, guard: ConnectionGuard | None, times: int) -> None:
        if guard is not None:
            self.open.remove(guard)
            for _ in range(times):
                guard.release()

    @invariant()
    def counts_are_those_of_what_is_open(self) -> None:
        quotas = self.quotas
        assert len(self.open) == quotas.total
        for listener in LISTENERS:
            count = sum(guard.listener == listener for guard in self.open)
            assert count == quotas.counts.by_listener[listener]
            assert count <= self.per_listener_max
        for number in range(4):
            count = sum(guard.address == address(number) for guard in self.open)
            assert count == quotas.counts.by_address[address(number)]
        assert quotas.is_exceeded("ADMIN") == (len(self.open) > self.connections_max)
        assert not quotas.is_exceeded("REPLICATION")


TestModel = Model.TestCase
