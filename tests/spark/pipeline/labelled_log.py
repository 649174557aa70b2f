"""Request logs of a broker with faults at known times, from a seed: what detection is measured by.

The broker has steady producers, groups of consumers, monitoring, and what makes detection hard:
days and minutes that differ, pauses, rare clients, jobs every 5, 15, 30 and 60 minutes with ids of
their own, clients that restart, APIs with few requests, and errors that are no faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trionet.protocol import error_codes
from trionet.protocol.request_log import SAMPLE_ALL, LoggedConnection, Origin, encode
from trionet.protocol.request_log_columns import _REQUEST as REQUEST

#: 2026-03-02 08:00 UTC.
BEGIN: Final = 1_772_438_400
PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT = 0, 1, 2, 3, 8
FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, DESCRIBE_GROUPS = 10, 11, 12, 14, 15
SASL_HANDSHAKE, API_VERSIONS, DESCRIBE_CONFIGS, SASL_AUTHENTICATE = 17, 18, 32, 36

Numbers = NDArray[np.int64]

_PARTS: Final = ("request_queue", "local", "remote", "throttle", "response_queue", "response_send")
#: The mean local time of each API in microseconds; others take ``_OTHERS_US``.
_LOCAL_US: Final = {PRODUCE: 500, FETCH: 250, METADATA: 400, DESCRIBE_CONFIGS: 900, HEARTBEAT: 60}
_OTHERS_US: Final = 150


@attrs.frozen
class Flow:
    """Requests of a client that come at a steady rate.

    Attributes:
        client: the client id.
        api: the API key.
        rate: the requests per second.
        listener: the listener.
    """

    client: str
    api: int
    rate: float
    listener: str = "PLAINTEXT"


@attrs.frozen
class Closed:
    """Connections that closed: when, in seconds from the start, and why."""

    second: float
    client: str
    listener: str
    reason: str


@attrs.define
class Minute:
    """The records of a minute.

    Attributes:
        names: the (client id, listener) pairs.
        columns: the columns of the requests; ``who`` is an index of ``names``.
        closes: the closed connections.
    """

    names: list[tuple[str, str]]
    columns: dict[str, Numbers]
    closes: list[Closed]

    def who(self, client: str | None = None, listener: str | None = None) -> NDArray[np.bool_]:
        """Which requests are of a client, or of a listener."""
        chosen = [client in (None, each[0]) and listener in (None, each[1]) for each in self.names]
        found: NDArray[np.bool_] = np.array(chosen)[self.columns["who"]]
        return found

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Drop the other requests."""
        self.columns = {name: each[which] for name, each in self.columns.items()}

    def values(self) -> Any:
        """The records as values of the log, in no order."""
        parts = [self._of_client(number) for number in range(len(self.names))]
        closes = [encode(_connection(each)) for each in self.closes]
        found = [part for part in parts if part is not None]
        return pa.concat_arrays([*found, pa.array(closes, pa.binary())])

    def _of_client(self, number: int) -> Any:
        is_its = self.columns["who"] == number
        count = int(is_its.sum())
        if not count:
            return None
        client, listener = (name.encode() for name in self.names[number])
        logged = np.zeros(count, REQUEST)
        logged["version"], logged["node_id"], logged["sample_ppm"] = 1, 1, SAMPLE_ALL
        logged["listener_length"], logged["client_id_length"] = len(listener), len(client)
        its = {name: each[is_its] for name, each in self.columns.items()}
        for name in ("api_key", "end", "error_code", "completed_at"):
            logged[name] = its[name]
        logged["request_bytes"], logged["response_bytes"] = 100, 200
        for name in _PARTS:
            logged[f"{name}_us"] = its[name]
        logged["total_us"] = sum(its[name] for name in _PARTS if name != "throttle")
        texts = np.frombuffer(listener + client, np.uint8)
        size = REQUEST.itemsize + len(texts)
        data = np.empty((count, size), np.uint8)
        data[:, : REQUEST.itemsize] = logged.view(np.uint8).reshape(count, -1)
        data[:, REQUEST.itemsize :] = texts
        bounds = (np.arange(count + 1) * size).astype(np.int32)
        return pa.BinaryArray.from_buffers(
            pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
        )


def _connection(closed: Closed) -> LoggedConnection:
    return LoggedConnection(
        origin=Origin(node_id=1, processor=0, listener=closed.listener, client_id=closed.client),
        closed_at_us=round((BEGIN + closed.second) * 1e6),
        open_us=30_000_000,
        requests=20,
        bytes_received=2000,
        bytes_sent=4000,
        reason=closed.reason,
    )


#: The producers, whose rates differ by a factor of 30, on two listeners.
PRODUCERS: Final = {
    "shop": 14.0,
    "orders": 9.0,
    "clicks": 6.0,
    "billing": 4.0,
    "stock": 3.0,
    "mail": 2.0,
    "audit": 1.0,
    "cron": 0.5,
}
ON_SSL: Final = frozenset({"orders", "billing", "mail", "report-0", "report-1", "report-2"})
#: The consumers of two groups.
GROUPS: Final = {
    "search": ("search-0", "search-1", "search-2", "search-3"),
    "report": ("report-0", "report-1", "report-2"),
}


def flows() -> list[Flow]:
    """The steady traffic of the broker."""
    found = []
    for client, rate in PRODUCERS.items():
        found += [Flow(client, PRODUCE, rate, _listener(client))]
        found += [Flow(client, METADATA, 1 / 300, _listener(client))]
    for members in GROUPS.values():
        for number, client in enumerate(members):
            listener = _listener(client)
            found += [Flow(client, FETCH, 2.0 + number, listener)]
            found += [Flow(client, HEARTBEAT, 1 / 3, listener)]
            found += [Flow(client, OFFSET_COMMIT, 1 / 5, listener)]
            found += [Flow(client, METADATA, 1 / 300, listener)]
    found += [Flow("exporter", api, rate) for api, rate in _EXPORTER.items()]
    return [*found, Flow("ui", METADATA, 1 / 20), Flow("ui", DESCRIBE_CONFIGS, 1 / 60)]


_EXPORTER: Final = {METADATA: 1 / 10, LIST_OFFSETS: 1 / 5, DESCRIBE_GROUPS: 1 / 15}


def _listener(client: str) -> str:
    return "SSL" if client in ON_SSL else "PLAINTEXT"


class Broker:
    """The traffic of a broker, minute by minute, from a seed.

    Args:
        seed: of what is drawn.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._flows = flows()
        self._noise = np.zeros(len(self._flows))
        self._slow = 0.0
        self._phase = self.rng.uniform(0, 1440)
        self._silent: dict[str, tuple[float, float]] = {}

    def minute(self, number: int) -> Minute:
        """Return the records of the next minute."""
        rng, start = self.rng, 60.0 * number
        minute = Minute([], {}, [])
        columns: dict[str, list[Numbers]] = {"who": [], "api_key": [], "at": []}
        of_day = 1 + 0.3 * np.sin(2 * np.pi * (number + self._phase) / 1440)
        self._noise = 0.8 * self._noise + rng.normal(0, 0.05, len(self._noise))
        self._slow = 0.7 * self._slow + rng.normal(0, 0.06)
        for flow, noise in zip(self._flows, self._noise, strict=True):
            mean = 60 * flow.rate * of_day * np.exp(noise)
            add(minute, columns, flow, start + 60 * rng.random(rng.poisson(mean)))
        self._jobs(number, minute, columns)
        self._passers_by(number, minute, columns)
        restarts = self._restarts(number, minute, columns)
        minute.columns = {name: np.concatenate(each) for name, each in columns.items()}
        self._times(minute)
        self._errors(minute, restarts)
        for client, (begin, end) in self._silent.items():
            at = minute.columns["at"]
            minute.keep(~minute.who(client) | (at < begin * 1e6) | (at > end * 1e6))
        return minute

    def _jobs(self, number: int, minute: Minute, columns: Any) -> None:
        start = 60.0 * number
        for every, at, client, apis, seconds in _JOBS:
            if number % every == at:
                name = client.format(number)
                for api, count in apis.items():
                    seconds_of = start + 20 + seconds * self.rng.random(self.rng.poisson(count))
                    # What runs into the next minute is logged there by a client of the same name.
                    seconds_of = np.minimum(seconds_of, start + 59.9)
                    add(minute, columns, Flow(name, api, 0), seconds_of)
                minute.closes += [Closed(start + 59, name, "PLAINTEXT", "PEER_CLOSED")]

    def _passers_by(self, number: int, minute: Minute, columns: Any) -> None:
        rng, start = self.rng, 60.0 * number
        for _ in range(rng.poisson(6 / 60)):
            name = f"console-{rng.integers(10_000)}"
            apis = {API_VERSIONS: 2, METADATA: 2, FIND_COORDINATOR: 1, JOIN_GROUP: 2, FETCH: 30}
            for api, count in apis.items():
                add(minute, columns, Flow(name, api, 0), start + 60 * rng.random(count))
            minute.closes += [Closed(start + 58, name, "PLAINTEXT", "PEER_CLOSED")]
        for _ in range(rng.poisson(4 / 60)):
            minute.closes += [Closed(start + 60 * rng.random(), "ui", "PLAINTEXT", "IDLE")]

    def _restarts(self, number: int, minute: Minute, columns: Any) -> Sequence[str]:
        """A client that restarts is silent for some seconds; its group is rebalanced."""
        rng, start = self.rng, 60.0 * number
        self._silent = {}
        if rng.random() > 1.5 / 60:
            return ()
        everyone = [*PRODUCERS, *(each for members in GROUPS.values() for each in members)]
        client = str(rng.choice(everyone))
        begin = start + rng.uniform(0, 35)
        self._silent[client] = (begin, begin + rng.uniform(5, 20))
        minute.closes += [Closed(begin, client, _listener(client), "PEER_CLOSED")] * 2
        after = np.full(2, self._silent[client][1] + 0.5)
        for api in (API_VERSIONS, METADATA):
            add(minute, columns, Flow(client, api, 0, _listener(client)), after)
        members = next((each for each in GROUPS.values() if client in each), ())
        for member in members:
            for api in (JOIN_GROUP, SYNC_GROUP):
                add(minute, columns, Flow(member, api, 0, _listener(member)), after)
        return members

    def _times(self, minute: Minute) -> None:
        rng, api, count = self.rng, minute.columns["api_key"], len(minute.columns["api_key"])
        local = np.full(count, float(_OTHERS_US))
        for key, each in _LOCAL_US.items():
            local[api == key] = each
        slow = np.exp(self._slow + rng.normal(0, 0.5, (4, count)))
        # Some requests are far slower than others: they read from the disk, or wait for a lock.
        local *= np.where(rng.random(count) < 0.01, rng.uniform(4, 20, count), 1.0)
        queue = 80.0 * slow[0]
        at = minute.columns["at"] / 1e6
        if rng.random() < 1 / 20:  # a pause, as of garbage collection
            pause = rng.uniform(at.min(), at.max()), rng.uniform(0.05, 0.4)
            waiting = pause[0] + pause[1] - at
            queue += np.where((waiting > 0) & (waiting < pause[1]), waiting * 1e6, 0)
        polls = np.where(rng.random(count) < 0.6, rng.uniform(0, 500_000, count), 0)
        drawn = {
            "request_queue": queue,
            "local": local * slow[1],
            "remote": np.where(api == FETCH, polls, 0),
            "throttle": np.zeros(count),
            "response_queue": 20.0 * slow[2],
            "response_send": 40.0 * slow[3],
        }
        remote = np.isin(api, (JOIN_GROUP, SYNC_GROUP))
        drawn["remote"][remote] = rng.uniform(0, 3_000_000, remote.sum())
        # A job that reads old segments has them read from the disk.
        is_old = minute.who("report-15m")
        drawn["local"] = np.where(is_old, drawn["local"] * 12, drawn["local"])
        minute.columns |= {name: each.astype(np.int64) for name, each in drawn.items()}

    def _errors(self, minute: Minute, members: Sequence[str]) -> None:
        rng, count = self.rng, len(minute.columns["at"])
        drawn = np.where(rng.random(count) < 0.001, error_codes.UNKNOWN_TOPIC_OR_PARTITION, 0)
        api = minute.columns["api_key"]
        drawn[(api == JOIN_GROUP) & (rng.random(count) < 0.5)] = error_codes.MEMBER_ID_REQUIRED
        for member in members:
            of_member = minute.who(member) & (api == HEARTBEAT)
            drawn[of_member & (rng.random(count) < 0.3)] = error_codes.REBALANCE_IN_PROGRESS
        minute.columns["error_code"] = drawn.astype(np.int64)
        minute.columns["end"] = np.zeros(count, np.int64)


#: Jobs: every how many minutes, at which of them, the client id, its requests, and for how long.
_JOBS: Final[Sequence[tuple[int, int, str, Mapping[int, int], float]]] = (
    (5, 2, "flush-5m", {PRODUCE: 300, METADATA: 2, API_VERSIONS: 1}, 15),
    (15, 7, "report-15m", {FETCH: 900, METADATA: 3, API_VERSIONS: 2}, 35),
    (30, 11, "backup-30m-{}", {DESCRIBE_CONFIGS: 120, LIST_OFFSETS: 300, API_VERSIONS: 1}, 30),
    (60, 17, "load-60m-{}", {PRODUCE: 3500, METADATA: 5, API_VERSIONS: 4}, 38),
)


def add(minute: Minute, columns: Any, flow: Flow, seconds: NDArray[np.float64]) -> None:
    """Add requests at the given seconds from the start."""
    name = (flow.client, flow.listener)
    if name not in minute.names:
        minute.names.append(name)
    columns["who"].append(np.full(len(seconds), minute.names.index(name)))
    columns["api_key"].append(np.full(len(seconds), flow.api))
    columns["at"].append((seconds * 1e6).astype(np.int64))


def table(minute: Minute) -> Any:
    """The records of a minute as Spark hands them to the fold."""
    minute.columns["completed_at"] = minute.columns["at"] + BEGIN * 1_000_000
    values = minute.values()
    count = len(values)
    read_at = int((BEGIN + 3600 * 24 * 30) * 1e6)
    return pa.RecordBatch.from_arrays(
        [
            values,
            pa.repeat(pa.scalar(0, pa.int32()), count),
            pa.array(range(count), pa.int64()),
            pa.repeat(pa.scalar(read_at, pa.timestamp("us", tz="UTC")), count),
        ],
        names=["value", "partition", "offset", "read_at"],
    )


def clean_log(seed: int, minutes: int) -> Iterator[Minute]:
    """The minutes of a broker without faults."""
    broker = Broker(seed)
    for number in range(minutes):
        yield broker.minute(number)
