"""Connections a second: acceptors that wait as long as the quotas tell them, in simulated time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import pytest

from trionet.errors import ConfigError
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


class Acceptor:
    """The accept loop of one listener: connections pass one after another."""

    def __init__(self, listener: str) -> None:
        self.listener = listener
        self.arriving: deque[tuple[float, str]] = deque()
        self.waiting: Delayed | None = None

    def next_at(self, now: float) -> float:
        """When it has something to do."""
        if self.waiting is not None:
            return self.waiting.ends_at if self.waiting.seconds < math.inf else math.inf
        return max(now, self.arriving[0][0]) if self.arriving else math.inf


class Server:
    """Acceptors of three listeners, the last one protected, and what became of connections.

    Attributes:
        now: the time, which jumps from one event to the next.
        guards: of those that were admitted.
        refused: those that were rejected, by listener.
    """

    def __init__(
        self,
        limits: ServerLimits | None = None,
        listener_limits: ListenerLimits | None = None,
    ) -> None:
        self.now = 1000.0
        self.quotas = ConnectionQuotas(
            limits, protected_listener="REPLICATION", on_slot_free=self._retry_all
        )
        self._acceptors = {name: Acceptor(name) for name in LISTENERS}
        for name in LISTENERS:
            self.quotas.add_listener(name, listener_limits)
        self.guards: list[ConnectionGuard] = []
        self.refused: dict[str, list[Rejected]] = {name: [] for name in LISTENERS}

    def connect(
        self, listener: str, count: int, per_second: float, addresses: Sequence[str] = ("10.0.0.1",)
    ) -> None:
        """Let connections come from now on, at a steady rate, of these addresses in turn."""
        self._acceptors[listener].arriving.extend(
            (self.now + number / per_second, addresses[number % len(addresses)])
            for number in range(count)
        )

    def run(self, seconds: float = math.inf) -> None:
        """Accept until nobody has anything to do, or for some time."""
        end = self.now + seconds
        while True:
            acceptor = min(
                self._acceptors.values(), key=lambda acceptor: acceptor.next_at(self.now)
            )
            at = acceptor.next_at(self.now)
            if at == math.inf or at > end:
                break
            self.now = at
            self._accept(acceptor)
        if end < math.inf:
            self.now = end

    def serve(
        self, listener: str, count: int, per_second: float, addresses: Sequence[str] = ("10.0.0.1",)
    ) -> None:
        """Connections to one listener, all of them treated."""
        self.connect(listener, count, per_second, addresses)
        self.run()

    def serve_on_all(self, count: int, per_second: float) -> None:
        """As many connections to each listener at the same time."""
        for listener in LISTENERS:
            self.connect(listener, count, per_second)
        self.run()

    def rate(self, listener: str) -> float:
        return self.quotas.listener(listener).rate.per_second(self.now)

    def delayed(self) -> list[bool]:
        """Of each listener, whether it had to wait for a rate."""
        return [quota.delayed > 0 for quota in self.quotas.listeners]

    def _accept(self, acceptor: Acceptor) -> None:
        admission: Admission
        if acceptor.waiting is not None:
            admission = self.quotas.retry(acceptor.waiting, self.now)
        else:
            _, address = acceptor.arriving.popleft()
            admission = self.quotas.try_admit(acceptor.listener, address, self.now)
        acceptor.waiting = admission if isinstance(admission, Delayed) else None
        if isinstance(admission, ConnectionGuard):
            self.guards.append(admission)
        elif isinstance(admission, Rejected):
            self.refused[acceptor.listener].append(admission)

    def _retry_all(self) -> None:
        for acceptor in self._acceptors.values():
            if acceptor.waiting is not None:
                self._accept(acceptor)


def test_a_rate_below_the_limit_of_the_server_delays_no_connection() -> None:
    """Q8: 120 a second, where 125 are allowed."""
    server = Server(ServerLimits(connections_per_second_max=125))

    server.serve_on_all(count=600, per_second=40)

    assert 1800 == server.quotas.total
    assert [False, False, False] == server.delayed()
    assert {0} == {quota.blocked_seconds for quota in server.quotas.listeners}


def test_a_rate_above_the_limit_of_the_server_delays_all_but_the_protected_listener() -> None:
    """Q9: 300 a second, where 90 are allowed; all of them get in."""
    server = Server(ServerLimits(connections_per_second_max=90))

    server.serve_on_all(count=1200, per_second=100)

    assert 3600 == server.quotas.total
    assert [True, True, False] == server.delayed()
    # Less than 90 is fine: each of two acceptors waits for what both of them were too fast.
    assert 75 < server.quotas.rate.per_second(server.now) < 97
    assert server.quotas.listener("EXTERNAL").blocked_seconds > 1


def test_a_rate_below_the_limit_of_a_listener_does_not_delay_it() -> None:
    """Q10: 40 a second, where 50 are allowed."""
    server = Server(listener_limits=ListenerLimits(connections_per_second_max=50))

    server.serve_on_all(count=400, per_second=40)

    assert [False, False, False] == server.delayed()


def test_a_rate_above_the_limit_of_a_listener_delays_it() -> None:
    """Q10: 40 a second, where 30 are allowed, also for the protected listener."""
    server = Server(listener_limits=ListenerLimits(connections_per_second_max=30))

    server.serve_on_all(count=600, per_second=40)

    assert 1800 == server.quotas.total
    assert [True, True, True] == server.delayed()
    for listener in LISTENERS:
        assert 30 == pytest.approx(server.rate(listener), abs=7)


def test_a_rate_below_the_limit_of_an_address_refuses_no_connection() -> None:
    """Q11: 25 a second, where 30 are allowed; an address without a limit has none."""
    server = Server()
    server.quotas.set_address_rate("10.0.0.1", 30)

    server.connect("EXTERNAL", 300, 25)
    server.connect("ADMIN", 3000, 250, ["10.0.0.2"])
    server.run()

    assert 3300 == server.quotas.total
    assert [False, False, False] == server.delayed()
    rates = server.quotas.addresses.all_per_second(server.now, 10)
    assert ["10.0.0.1"] == list(rates)
    assert 25 == pytest.approx(rates["10.0.0.1"], abs=2)


@pytest.mark.parametrize(
    ("spelling", "address"),
    [("::ffff:a00:1", "10.0.0.1"), ("0:0:0:0:0:0:0:1", "::1"), ("FE80::1", "fe80::1%eth0")],
)
def test_the_rate_of_an_address_holds_in_every_spelling(spelling: str, address: str) -> None:
    server = Server()
    server.quotas.set_address_rate(spelling, 0)

    server.serve("EXTERNAL", 10, 10, [address])
    assert 10 == len(server.refused["EXTERNAL"])

    server.quotas.set_address_rate(address, None)
    server.serve("EXTERNAL", 10, 10, [address])
    assert 10 == len(server.refused["EXTERNAL"])


@pytest.mark.parametrize("host", ["localhost", "", "[::1]", "10.0.0.0/8"])
def test_a_rate_of_what_is_no_address_is_an_error(host: str) -> None:
    with pytest.raises(ConfigError, match=r"connection_creation_rate: .* is not an IP address"):
        Server().quotas.set_address_rate(host, 20)


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.2"])
def test_a_rate_above_the_limit_of_an_address_refuses_connections(address: str) -> None:
    """Q12: 40 a second, where 20 are allowed, as the own limit of one and the default of others."""
    server = Server()
    server.quotas.set_address_rate("10.0.0.1" if address == "10.0.0.1" else None, 20)

    server.serve("EXTERNAL", 600, 40, [address])

    refused = server.refused["EXTERNAL"]
    assert refused
    for rejected in refused:
        assert RejectReason.TOO_MANY_A_SECOND is rejected.reason
        assert (address, 20, None) == (rejected.address, rejected.limit, rejected.guard)
        assert 0 < rejected.close_after <= 1
    assert 600 == server.quotas.total + len(refused)
    throttled = [quota.throttled for quota in server.quotas.listeners]
    assert [len(refused), 0, 0] == throttled
    seconds = sum(rejected.close_after for rejected in refused)
    assert seconds == pytest.approx(server.quotas.listener("EXTERNAL").throttled_seconds)
    assert 0 == server.quotas.listener("EXTERNAL").blocked_seconds


def test_the_limits_of_addresses_and_of_a_listener_hold_together() -> None:
    """Q13: 25 a second of each address and 35 of the listener; 80 come from two addresses."""
    server = Server(listener_limits=ListenerLimits(connections_per_second_max=35))
    server.quotas.set_address_rate(None, 25)

    server.serve("EXTERNAL", 800, 80, ["10.0.0.1", "10.0.0.2"])

    addresses = {rejected.address for rejected in server.refused["EXTERNAL"]}
    assert len(addresses) <= 1
    assert 35 == pytest.approx(server.rate("EXTERNAL"), abs=7)
    assert server.quotas.listener("EXTERNAL").blocked_seconds > 0


@pytest.mark.parametrize("listener", ["EXTERNAL", "REPLICATION"])
def test_a_refused_connection_is_in_no_rate(listener: str) -> None:
    """Q14: neither in that of the address, nor the listener's, nor the server's."""
    server = Server()
    server.quotas.set_address_rate("10.0.0.1", 0)

    server.serve(listener, 200, 100, ["10.0.0.1", "10.0.0.2"])

    assert 100 == len(server.refused[listener]) == server.quotas.total
    assert {"10.0.0.1": 0} == server.quotas.addresses.all_per_second(server.now, 10)
    measured = server.quotas.listener(listener).rate.measured_seconds(server.now)
    assert 100 / measured == pytest.approx(server.rate(listener))
    of_server = 0 if listener == "REPLICATION" else 100 / measured
    assert of_server == pytest.approx(server.quotas.rate.per_second(server.now))


def test_the_rate_of_a_listener_is_taken_away_and_set_again_while_it_serves() -> None:
    """Q16: 20 a second, any, 10."""
    server = Server(listener_limits=ListenerLimits(connections_per_second_max=20))

    def delays(count: int) -> int:
        before = server.quotas.listener("EXTERNAL").delayed
        server.serve("EXTERNAL", count, 40)
        return server.quotas.listener("EXTERNAL").delayed - before

    assert delays(400) > 0
    server.quotas.set_listener_limits("EXTERNAL", ListenerLimits())
    assert 0 == delays(400)
    server.quotas.set_listener_limits("EXTERNAL", ListenerLimits(connections_per_second_max=10))
    assert delays(400) > 0
    assert 10 == pytest.approx(server.rate("EXTERNAL"), abs=7)


def test_the_rate_of_the_server_is_set_while_it_serves() -> None:
    """Q16: any, 50, and any again."""
    server = Server()

    server.serve_on_all(count=200, per_second=40)
    assert [False, False, False] == server.delayed()
    server.quotas.set_limits(ServerLimits(connections_per_second_max=50))
    server.serve_on_all(count=400, per_second=40)
    assert [True, True, False] == server.delayed()
    assert 50 == pytest.approx(server.quotas.rate.per_second(server.now), abs=7)

    server.quotas.set_limits(ServerLimits())
    before = server.quotas.listener("ADMIN").delayed
    server.serve("ADMIN", 400, 40)
    assert before == server.quotas.listener("ADMIN").delayed


def test_the_rate_of_an_address_follows_its_limit() -> None:
    """Q18: 20, 30, none; and a new default for an address that was never seen."""
    server = Server()

    def admitted_in_ten_seconds(address: str) -> int:
        server.run(20)
        before = server.quotas.total
        server.serve("EXTERNAL", 1000, 100, [address])
        return server.quotas.total - before

    server.quotas.set_address_rate("10.0.0.1", 20)
    assert 20 * 10 == pytest.approx(admitted_in_ten_seconds("10.0.0.1"), rel=0.1)
    server.quotas.set_address_rate("10.0.0.1", 30)
    assert 30 * 10 == pytest.approx(admitted_in_ten_seconds("10.0.0.1"), rel=0.1)
    server.quotas.set_address_rate("10.0.0.1", None)
    assert 1000 == admitted_in_ten_seconds("10.0.0.1")

    server.quotas.set_address_rate(None, 5)
    assert (5, 5) == tuple(map(server.quotas.addresses.limit_of, ["10.0.0.1", "10.0.0.9"]))
    assert 5 * 10 == pytest.approx(admitted_in_ten_seconds("10.0.0.9"), rel=0.1)


def test_a_number_and_a_rate_hold_together() -> None:
    """Q19: 25 a second up to 350; the 351st waits until one closes."""
    server = Server(
        listener_limits=ListenerLimits(connections_max=350, connections_per_second_max=25)
    )
    server.serve("EXTERNAL", 350, 40)
    assert server.quotas.listener("EXTERNAL").delayed > 0
    assert 25 == pytest.approx(server.rate("EXTERNAL"), abs=7)
    server.run(20)

    server.serve("EXTERNAL", 1, 1)
    server.run(3)
    assert 350 == server.quotas.total
    blocked_seconds = server.quotas.listener("EXTERNAL").blocked_seconds
    server.guards[0].release()

    assert 350 == server.quotas.total == len(server.guards) - 1
    blocked_seconds = server.quotas.listener("EXTERNAL").blocked_seconds - blocked_seconds
    assert 3 == pytest.approx(blocked_seconds)


def test_a_wait_for_a_rate_is_not_cut_short_by_a_connection_that_closes() -> None:
    server = Server(listener_limits=ListenerLimits(connections_per_second_max=1))
    server.serve("EXTERNAL", 20, 1000)
    begin = server.now

    server.connect("EXTERNAL", 1, 1)
    server.run(0.5)
    server.guards[0].release()
    assert 20 == len(server.guards)
    server.run()

    assert 21 == len(server.guards)
    assert 1 == pytest.approx(server.now - begin)
