"""Kinds of faults, to be planted into the traffic of :mod:`.labelled_log`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from spark.pipeline.labelled_log import (
    API_VERSIONS,
    FETCH,
    FIND_COORDINATOR,
    GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SYNC_GROUP,
    Broker,
    Closed,
    Minute,
)
from trionet.protocol import error_codes
from trionet.protocol.request_log import CLOSED, GONE

Flags = NDArray[np.bool_]

#: How long the broker runs before the first fault, and from one fault to the next.
QUIET_MINUTES: Final = 75
EVERY_MINUTES: Final = 35


@attrs.frozen
class Fault:
    """A fault and when it was.

    Attributes:
        kind: its kind, a key of ``KINDS``.
        begin: when its effect begins, in seconds from the start of the log.
        end: when it ends.
    """

    kind: str
    begin: float
    end: float


class Planted:
    """What a fault does to a minute, in the seconds in which it lasts."""

    def __init__(self, broker: Broker, fault: Fault, minute: Minute, number: int) -> None:
        self.rng = broker.rng
        self.fault = fault
        self.minute = minute
        self.begin = max(fault.begin, 60.0 * number)
        self.end = min(fault.end, 60.0 * (number + 1))

    @property
    def seconds(self) -> float:
        return max(0.0, self.end - self.begin)

    def during(self, *apis: int, client: str | None = None, listener: str | None = None) -> Flags:
        """Which requests are hit."""
        columns = self.minute.columns
        at = columns["at"] / 1e6
        found: Flags = (at >= self.begin) & (at < self.end) & self.minute.who(client, listener)
        return found & np.isin(columns["api_key"], apis) if apis else found

    def some(self, which: Flags, share: float) -> Flags:
        """A random share of requests."""
        found: Flags = which & (self.rng.random(len(which)) < share)
        return found

    def drop(self, which: Flags) -> None:
        self.minute.keep(~which)

    def fail(self, which: Flags, code: int = 0, end: int = 0) -> None:
        self.minute.columns["error_code"][which] = code
        self.minute.columns["end"][which] = end

    def slow(self, which: Flags, part: str, mean_us: float) -> None:
        more = self.rng.gamma(4, mean_us / 4, int(which.sum())).astype(np.int64)
        self.minute.columns[part][which] += more

    def requests(
        self, rate: float, client: str, api: int, *, listener: str = "PLAINTEXT", code: int = 0
    ) -> None:
        """Add requests at a rate per second."""
        columns, name = self.minute.columns, (client, listener)
        count = self.rng.poisson(rate * self.seconds)
        if name not in self.minute.names:
            self.minute.names.append(name)
        added = {key: np.full(count, 100) for key in columns}
        added["at"] = (self.rng.uniform(self.begin, self.end, count) * 1e6).astype(np.int64)
        added |= {"who": np.full(count, self.minute.names.index(name))}
        added |= {"api_key": np.full(count, api), "error_code": np.full(count, code)}
        added |= {each: np.zeros(count, np.int64) for each in ("end", "remote", "throttle")}
        added["local"] = self.rng.gamma(4, 100, count).astype(np.int64)
        self.minute.columns = {key: np.concatenate([columns[key], added[key]]) for key in columns}

    def closes(self, rate: float, client: str, reason: str, listener: str = "PLAINTEXT") -> None:
        """Add closed connections at a rate per second."""
        for second in self.rng.uniform(self.begin, self.end, self.rng.poisson(rate * self.seconds)):
            self.minute.closes.append(Closed(float(second), client, listener, reason))


def _client_stops(it: Planted) -> None:
    it.drop(it.during(client="orders"))


def _consumer_stops_to_fetch(it: Planted) -> None:
    it.drop(it.during(FETCH, client="search-2"))


def _errors_of_a_client(it: Planted) -> None:
    it.fail(it.some(it.during(PRODUCE, client="clicks"), 0.3), error_codes.NOT_ENOUGH_REPLICAS)


def _few_errors_of_a_client(it: Planted) -> None:
    it.fail(it.some(it.during(PRODUCE, client="billing"), 0.12), error_codes.INVALID_RECORD)


def _p99_doubles(it: Planted) -> None:
    it.slow(it.some(it.during(PRODUCE), 0.03), "local", 12_000)


def _queue(it: Planted) -> None:
    it.slow(it.during(), "request_queue", 6_000)


def _send(it: Planted) -> None:
    it.slow(it.during(listener="SSL"), "response_send", 15_000)


def _remote(it: Planted) -> None:
    it.slow(it.during(PRODUCE), "remote", 25_000)


def _disk_stall(it: Planted) -> None:
    it.slow(it.during(PRODUCE, FETCH), "local", 400_000)
    it.drop(it.some(it.during(PRODUCE), 0.5))


def _slow_metadata(it: Planted) -> None:
    it.slow(it.during(METADATA), "local", 8_000)


def _throttled(it: Planted) -> None:
    it.slow(it.some(it.during(PRODUCE, client="shop"), 0.6), "throttle", 300_000)


def _new_clients(it: Planted) -> None:
    for number in range(int(it.begin), int(it.end)):
        for each in range(2):
            it.requests(5 / it.seconds, f"worker-{number}-{each}", METADATA)
            it.requests(2 / it.seconds, f"worker-{number}-{each}", API_VERSIONS)


def _connection_storm(it: Planted) -> None:
    it.requests(15, "stock", API_VERSIONS)
    it.closes(15, "stock", "PEER_CLOSED")


def _idle_closes(it: Planted) -> None:
    it.closes(3, "audit", "INVALID_RECEIVE")


def _authentication(it: Planted) -> None:
    code = error_codes.SASL_AUTHENTICATION_FAILED
    it.requests(4, "intruder", SASL_HANDSHAKE, listener="SSL")
    it.requests(4, "intruder", SASL_AUTHENTICATE, listener="SSL", code=code)
    it.closes(4, "intruder", "AUTHENTICATION_FAILED", "SSL")


def _listener_fails(it: Planted) -> None:
    it.fail(it.some(it.during(listener="SSL"), 0.3), end=GONE)
    it.drop(it.some(it.during(listener="SSL"), 0.8))
    it.closes(2, "orders", "TLS_FAILED", "SSL")


def _retry_storm(it: Planted) -> None:
    it.fail(it.during(PRODUCE, client="mail"), error_codes.NOT_LEADER_OR_FOLLOWER)
    it.requests(60, "mail", PRODUCE, listener="SSL", code=error_codes.NOT_LEADER_OR_FOLLOWER)


def _spike(it: Planted) -> None:
    it.requests(90, "clicks", PRODUCE)


def _leak(it: Planted) -> None:
    # The time of all requests has doubled when the fault is said to begin, and grows on.
    slow = it.during()
    age = it.minute.columns["at"][slow] / 1e6 - it.fault.begin
    factor = 2.0 + 4.0 * age / (it.fault.end - it.fault.begin)
    local = it.minute.columns["local"]
    local[slow] = (local[slow] * factor + 1000 * factor).astype(np.int64)


def _partial_outage(it: Planted) -> None:
    hit = it.some(it.during(), 0.5)
    it.fail(hit, end=CLOSED)
    it.closes(5, "shop", "ERROR")


def _rebalances(it: Planted) -> None:
    for member in GROUPS["search"]:
        it.requests(1.2, member, JOIN_GROUP, code=error_codes.REBALANCE_IN_PROGRESS)
        it.requests(1.2, member, SYNC_GROUP, code=error_codes.REBALANCE_IN_PROGRESS)
        it.requests(0.3, member, FIND_COORDINATOR)
        it.fail(it.during(HEARTBEAT, client=member), error_codes.REBALANCE_IN_PROGRESS)
    for member in GROUPS["search"]:
        it.drop(it.some(it.during(FETCH, client=member), 0.8))


#: What each kind does, and for how many seconds.
KINDS: Final[dict[str, tuple[Callable[[Planted], None], float]]] = {
    "a producer stops": (_client_stops, 480),
    "a consumer stops to fetch": (_consumer_stops_to_fetch, 480),
    "errors of a client": (_errors_of_a_client, 480),
    "few errors of a small client": (_few_errors_of_a_client, 480),
    "the p99 of Produce doubles": (_p99_doubles, 480),
    "requests wait in the queue": (_queue, 300),
    "responses of a listener are slow": (_send, 300),
    "replication is slow": (_remote, 300),
    "the disk stalls": (_disk_stall, 100),
    "Metadata is slow": (_slow_metadata, 480),
    "a client is throttled": (_throttled, 480),
    "300 new clients": (_new_clients, 150),
    "a storm of connections": (_connection_storm, 300),
    "connections close for a new reason": (_idle_closes, 300),
    "authentication fails": (_authentication, 300),
    "a listener fails": (_listener_fails, 300),
    "a storm of retries": (_retry_storm, 300),
    "a spike of traffic": (_spike, 300),
    "a slow leak": (_leak, 1500),
    "an outage of a part": (_partial_outage, 75),
    "a group rebalances on and on": (_rebalances, 300),
}
#: What an operator must be told of each kind besides the time: fields of the incident.
CAUSES: Final[dict[str, dict[str, object]]] = {
    "a producer stops": {"measure": "requests_per_s", "client_id": "orders"},
    "a consumer stops to fetch": {"client_id": "search-2", "api_key": FETCH},
    "errors of a client": {"measure": "error_share", "client_id": "clicks"},
    "few errors of a small client": {"measure": "error_share", "client_id": "billing"},
    "the p99 of Produce doubles": {"api_key": PRODUCE, "phase": "local", "client_id": None},
    "requests wait in the queue": {"api_key": None, "phase": "request_queue", "client_id": None},
    "responses of a listener are slow": {"listener": "SSL", "phase": "response_send"},
    "replication is slow": {"api_key": PRODUCE, "phase": "remote", "client_id": None},
    "the disk stalls": {"phase": "local", "client_id": None},
    "Metadata is slow": {"api_key": METADATA, "phase": "local"},
    "a client is throttled": {"measure": "throttled_share", "client_id": "shop"},
    "300 new clients": {"measure": "clients"},
    "a storm of connections": {"measure": "connections_closed", "reason": "PEER_CLOSED"},
    "connections close for a new reason": {"reason": "INVALID_RECEIVE"},
    "authentication fails": {"listener": "SSL", "reason": "AUTHENTICATION_FAILED"},
    "a listener fails": {"measure": "error_share", "listener": "SSL", "client_id": None},
    "a storm of retries": {"measure": "error_share", "client_id": "mail"},
    "a spike of traffic": {"measure": "requests_per_s", "api_key": PRODUCE},
    "a slow leak": {"api_key": None, "phase": "local", "client_id": None},
    "an outage of a part": {"measure": "error_share", "client_id": None, "api_key": None},
    "a group rebalances on and on": {"measure": "requests_per_s"},
}
#: Each log has all but one of the kinds, another one with each seed.
FAULTS: Final = 20


def planted(seed: int) -> Sequence[Fault]:
    """The faults of a seed: the kinds in random order, at random times."""
    rng = np.random.default_rng(seed)
    order = [list(KINDS)[n] for n in rng.permutation(len(KINDS))][:FAULTS]
    found = []
    for number, kind in enumerate(order):
        begin = 60 * (QUIET_MINUTES + EVERY_MINUTES * number + rng.uniform(0, 5))
        if kind == "an outage of a part":
            begin = 60 * (begin // 60) + 52  # it begins at the edge of a minute
        found.append(Fault(kind, float(begin), float(begin + KINDS[kind][1])))
    return found


#: The first of these hides the others while it lasts: they are in the same requests, and smaller.
HIDES: Final[dict[str, frozenset[str]]] = {
    "the disk stalls": frozenset({"replication is slow"}),
    "requests wait in the queue": frozenset({"the p99 of Produce doubles", "a slow leak"}),
    "a slow leak": frozenset({"requests wait in the queue"}),
    "a listener fails": frozenset({"a producer stops", "few errors of a small client"}),
    "an outage of a part": frozenset(
        {"a listener fails", "errors of a client", "few errors of a small client"}
    ),
    "a group rebalances on and on": frozenset({"a consumer stops to fetch"}),
}
#: These are slow in the same phase, of the same API, for all clients: no request log tells which.
ALIKE: Final[dict[str, frozenset[str]]] = {
    "a slow leak": frozenset({"the disk stalls", "the p99 of Produce doubles", "Metadata is slow"}),
    "the disk stalls": frozenset({"the p99 of Produce doubles"}),
}


def planted_in_pairs(seed: int) -> Sequence[Fault]:
    """The faults of a seed, in pairs: the second begins while the first lasts, or soon after it."""
    rng = np.random.default_rng([seed, 2])
    while True:
        order = [list(KINDS)[n] for n in rng.permutation(len(KINDS))][:FAULTS]
        pairs = list(zip(order[::2], order[1::2], strict=True))
        if all(_are_told_apart(*pair, overlaps=n % 2 == 0) for n, pair in enumerate(pairs)):
            break
    found = []
    for number, (first, second) in enumerate(pairs):
        begin = 60 * (QUIET_MINUTES + 2 * EVERY_MINUTES * number + rng.uniform(0, 5))
        lasts = KINDS[first][1]
        after = rng.uniform(0.2, 0.8) * lasts if number % 2 == 0 else lasts + rng.uniform(60, 240)
        for kind, at in ((first, begin), (second, begin + after)):
            found.append(Fault(kind, float(at), float(at + KINDS[kind][1])))
    return found


def _are_told_apart(first: str, second: str, *, overlaps: bool) -> bool:
    if second in ALIKE.get(first, ()) or first in ALIKE.get(second, ()):
        return False
    return not overlaps or second not in HIDES.get(first, ())


def length_of(faults: Sequence[Fault]) -> int:
    """The minutes of a log with these faults."""
    return QUIET_MINUTES + EVERY_MINUTES * len(faults)


def faulty_log(seed: int, faults: Sequence[Fault], minutes: int) -> Iterator[Minute]:
    """The minutes of a broker with faults."""
    broker = Broker(seed)
    for number in range(minutes):
        minute = broker.minute(number)
        for fault in faults:
            if fault.begin < 60 * (number + 1) and fault.end > 60 * number:
                KINDS[fault.kind][0](Planted(broker, fault, minute, number))
        yield minute
