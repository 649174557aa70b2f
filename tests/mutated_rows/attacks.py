"""Each source of a dashboard and a pipeline, and what is made of it, with input that has changed.

No attack passes through the boundaries that catch what no one has foreseen (a part of a dashboard,
a view): an error that gets here would be logged there, but has a cause that must be mended.
"""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import attrs
import pyarrow as pa
import trio
import trio.testing

from mutated_rows.mutations import BYTES, mutated
from spark.pipeline.logged import BEGIN, request
from support.client import connect
from trionet import open_broker, open_producer
from trionet.client.consumer import ConsumerRecord
from trionet.dashboard._once import whole_view
from trionet.dashboard.drawing._cells import ASCII, FINE, Glyphs, Pen
from trionet.dashboard.drawing._export import TABLE_FORMS
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._snapshot import METRICS
from trionet.dashboard.sources._http_client import HttpClient
from trionet.dashboard.sources._network_source import (
    LISTS_WITHOUT_CLIENTS,
    MetricsListenerReader,
    NetworkSource,
)
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.views import all_views
from trionet.dashboard.views._requests import RequestView
from trionet.dashboard.views._tail import TailView
from trionet.metrics._request_times import PHASES
from trionet.protocol.request_log import encode
from trionet.spark.pipeline._anomalies import AnomalyDetector, order
from trionet.spark.pipeline._estimates import estimate
from trionet.spark.pipeline._fold import LogValues, folded
from trionet.spark.pipeline._objectives import BurnRates, Objective, ObjectiveCounter
from trionet.spark.pipeline._partials import INTAKE
from trionet.spark.pipeline._signals import signals
from trionet.spark.pipeline.incidents._incidents import IncidentTracker

#: How long the loop may be held, in seconds.
HELD_SECONDS_MAX: Final = 0.05


@attrs.define
class Outcome:
    """What an attack has found.

    Attributes:
        tried: how many inputs.
        ended: the inputs that would have ended the program, with the tracebacks.
        held_seconds: for how long the loop was held at most, in CPU time.
        slowest: the input that held it.
    """

    tried: int = 0
    ended: list[str] = attrs.field(factory=list)
    held_seconds: float = 0.0
    slowest: bytes = b""

    @contextmanager
    def step(self, data: bytes) -> Iterator[None]:
        """A step in which the loop is held, of which nothing may be raised."""
        began = time.thread_time()
        try:
            yield
        except Exception:  # boundary: each input is an attack of its own
            self.ended.append(f"{data[:2000]!r}\n{traceback.format_exc()}")
        spent = time.thread_time() - began
        if spent > self.held_seconds:
            self.held_seconds, self.slowest = spent, data


def show(model: Model, name: str, outcome: Outcome, data: bytes, glyphs: Glyphs) -> None:
    """Draw a view, its first row opened, and print it as `--once` does."""
    ui = Ui(all_views(), name)
    for _ in range(3):
        with outcome.step(data):
            draw(ui, model, 130, 45, glyphs, now=5.0)
        with outcome.step(data):
            ui.open()
    ui = Ui(all_views(), name)
    with outcome.step(data):
        whole_view(ui.current, model, Pen(130, 45, glyphs))
    for form in TABLE_FORMS.values():
        with outcome.step(data):
            if ui.current.table is not None and ui.current.table.missing is None:
                form(ui.current.table, ui.current.rows)


# Records of the topic of results.

WINDOW: Final = "2026-11-22T11:45:00Z"
RESULTS: Final[Mapping[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "windows": (
        {},
        {
            "records": 9,
            "requests": 9,
            "connections": 1,
            "request_bytes": 900,
            "series": 3,
            "response_bytes": 90,
            "errors": 0,
            "throttled": 0,
            "clients": 2,
        },
    ),
    "requests": (
        {"api": "Fetch", "client_id": "shop", "listener": "PLAINTEXT"},
        {
            "requests": 9,
            "requests_per_s": 0.15,
            "request_bytes_per_s": 15.0,
            "errors": 0,
            "response_bytes_per_s": 1.5,
            "throttled": 0,
            "total_p50_us": 90,
            "total_p95_us": 95,
            "total_p99_us": 99,
            "total_max_us": 100,
        },
    ),
    "talkers": (
        {"measure": "bytes", "rank": 1},
        {
            "client_id": "shop",
            "principal": "User:a",
            "listener": "PLAINTEXT",
            "bytes": 99,
            "requests": 9,
            "time_us": 900,
            "share": 0.5,
        },
    ),
    "anomalies": (
        {"api": "Fetch", "client_id": "shop", "listener": "PLAINTEXT", "measure": "error_share"},
        {"value": 0.5, "expected": 0.1, "spread": 0.01, "score": 40.0, "minutes": 60},
    ),
    "incidents": (
        {"incident": "2026-11-22T11:45Z"},
        {
            "state": "open",
            "start": WINDOW,
            "end": WINDOW,
            "worst": WINDOW,
            "api": "Fetch",
            "measure": "error_share",
            "phase": "local",
            "value": 0.5,
            "expected": 0.1,
            "score": 40.0,
            "anomalies": 3,
            "reason": "IDLE",
        },
    ),
}
PIPELINE_VIEWS: Final = ("pipeline", "talkers", "incidents", "anomalies")


def result_rows(rng: Random, count: int) -> Outcome:
    """Mutated records of the topic of results; whole ones beside them are shown all the same."""
    outcome, model = Outcome(), Model()
    model.pipeline.topic = "requests-results"
    while outcome.tried < count:
        kind = rng.choice(list(RESULTS))
        names, values = RESULTS[kind]
        key = {"kind": kind, "window": WINDOW, **names}
        which = rng.choice(("key", "value", "value", "both"))
        raw_key = json.dumps(key).encode() if which == "value" else mutated(rng, key)
        raw_value = json.dumps(values).encode() if which == "key" else mutated(rng, values)
        data = raw_key + b" " + raw_value
        with outcome.step(data):
            model.pipeline.put(
                None if rng.random() < 0.01 else raw_key, None if rng.random() < 0.05 else raw_value
            )
            model.pipeline.show(5.0)
        outcome.tried += 1
        if outcome.tried % 8 == 0:
            show(model, rng.choice(PIPELINE_VIEWS), outcome, data, rng.choice((ASCII, FINE)))
        if outcome.tried % 50 == 0:
            model.pipeline = type(model.pipeline)()
    model.pipeline.put(
        json.dumps({"kind": "windows", "window": WINDOW}).encode(),
        json.dumps(RESULTS["windows"][1]).encode(),
    )
    model.pipeline.show(6.0)
    assert 9 == model.pipeline.minutes[WINDOW].requests
    return outcome


# What a metrics server sends.

FAULTED: Final = {
    "time": 1.7e9,
    "api": "Fetch",
    "client_id": "shop",
    "connection": "c",
    "reaction": "none",
    "errors": ["NOT_LEADER_OR_FOLLOWER"],
}
FAULT: Final = {
    "number": 1,
    "which": "Fetch",
    "action": "hold",
    "state": "armed",
    "hits": 1,
    "times": 3,
    "requests": [FAULTED],
}
MEMBER: Final = {
    "id": "m1",
    "instance_id": None,
    "client_id": "shop",
    "client_host": "/127.0.0.1",
    "is_leader": True,
    "phase": "stable",
    "session_seconds": 45.0,
    "expires_seconds": 40.0,
}
GROUP: Final = {
    "number": 0,
    "id": "g",
    "state": "Stable",
    "state_seconds": 4.0,
    "generation": 12,
    "protocol_type": "consumer",
    "protocol": "range",
    "pending": 0,
    "members": [MEMBER, MEMBER],
    "positions": [["orders", 0, 5]],
}
REQUEST: Final = {
    "number": 7,
    "time": 1.7e9,
    "api": "Fetch",
    "version": 12,
    "client_id": "shop",
    "error_code": 0,
    "request_bytes": 90,
    "response_bytes": 900,
    "phases_ms": dict.fromkeys(PHASES, 0.5),
}
#: The lists of a snapshot that its broker fills, and those that are made up.
FILLED: Final = ("connections", "recently_closed", "log", "tasks", "transactions")
MADE_UP: Final[Mapping[str, Any]] = {"faults": FAULT, "groups": GROUP, "requests": REQUEST}
#: The views of the lists, by the section that is shown.
VIEWS: Final[Mapping[str, tuple[str, object]]] = {
    "connections": ("connections", None),
    "requests": ("connections", "c-1"),
    "closed": ("closes", None),
    "fetch_sessions": ("sessions", None),
    "groups": ("groups", None),
    "log": ("log", None),
    "tasks": ("trio", None),
    "faults": ("faults", None),
    "transactions": ("transactions", None),
}


async def pages() -> dict[str, Any]:
    """The pages of a broker that is in use, without the metrics that a dashboard does not read."""
    found: dict[str, Any] = {}
    async with (
        open_broker({"metrics.listener": "http://127.0.0.1:0"}) as broker,
        open_producer(broker.bootstrap_servers, transactional_id="t") as producer,
        producer.transaction(),
    ):
        await producer.send("orders", b"x")
        async with connect(broker.bootstrap_servers):
            pass
        assert broker.metrics is not None
        async with HttpClient(f"{broker.metrics.url}") as http:
            for path in ["/snapshot", *(f"/snapshot/{name}" for name in FILLED)]:
                _, body = await http.request("GET", f"{path}?limit=5")
                found[path] = json.loads(body)
    metrics = found["/snapshot"]["metrics"]
    found["/snapshot"]["metrics"] = {name: metrics[name] for name in METRICS if name in metrics}
    for name in (*MADE_UP, "fetch_sessions"):
        rows = [MADE_UP[name]] if name in MADE_UP else []
        found[f"/snapshot/{name}"] = {"version": 1, "total": len(rows), "rows": rows, "next": None}
    return found


class _Held(trio.abc.Instrument):
    """Measures for how long each step of the tasks of a dashboard holds the loop."""

    def __init__(self, outcome: Outcome, own: trio.lowlevel.Task) -> None:
        self._outcome = outcome
        self._own = own
        self._began = 0.0
        self.data = b""

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        spent = time.thread_time() - self._began
        is_own = task is self._own or task.name.endswith("respond")  # the server of the pages
        if not is_own and spent > self._outcome.held_seconds:
            self._outcome.held_seconds, self._outcome.slowest = spent, self.data


async def scrapes(rng: Random, count: int, whole: Mapping[str, Any]) -> Outcome:
    """Mutated pages, which a dashboard reads over HTTP, in virtual time."""
    outcome = Outcome()
    held = _Held(outcome, trio.lowlevel.current_task())
    bodies = {path: json.dumps(page).encode() for path, page in whole.items()}
    served = dict(bodies)

    async def respond(stream: trio.abc.Stream) -> None:
        received = b""
        while data := await stream.receive_some(65_536):
            received += data
            if received.endswith(b"\r\n\r\n"):
                path = re.split(rb"[ ?]", received)[1].decode()
                received, body = b"", served.get(path, b"{}")
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                await stream.send_all(head + body)

    async def open_stream() -> trio.abc.Stream:
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(respond, theirs)
        await trio.lowlevel.checkpoint()
        return ours

    trio.lowlevel.add_instrument(held)
    try:
        async with (
            HttpClient("http://127.0.0.1:1", connect=open_stream) as client,
            trio.open_nursery() as nursery,
        ):
            model = Model()
            source = NetworkSource(MetricsListenerReader(client), "here", LISTS_WITHOUT_CLIENTS)
            source.interval_seconds = 1.0
            await nursery.start(source.run, model)
            while outcome.tried < count:
                section = rng.choice(list(VIEWS))
                view, key = VIEWS[section]
                name = "requests" if section == "requests" else LISTS_WITHOUT_CLIENTS[section]
                path = rng.choice(("/snapshot", f"/snapshot/{name}"))
                held.data = served[path] = mutated(rng, whole[path])
                source.focus(section, key)
                await trio.sleep(1.5)
                outcome.tried += 1
                for each in (view, rng.choice(("overview", "apis", "processors", "quotas"))):
                    show(model, each, outcome, held.data, rng.choice((ASCII, FINE)))
                for row in list(model.requests.values())[:5]:
                    with outcome.step(held.data):
                        list(RequestView(row).lines(model, Pen(130, 45, FINE)))
                served[path] = bodies[path]
            # In the end all is as before: nothing that was read has broken what is kept.
            await trio.sleep(60.0)
            assert not model.alarms, model.alarms
            nursery.cancel_scope.cancel()
    finally:
        trio.lowlevel.remove_instrument(held)
    return outcome


# Records of any topic.


def tail_records(rng: Random, count: int) -> Outcome:
    """Records with mutated keys, values, headers and timestamps, as the tail of a topic."""
    outcome, model = Outcome(), Model()
    place = ("orders", None)
    model.select_tail(place)
    view = TailView(*place)
    while outcome.tried < count:
        records, data = [], b""
        for _ in range(10):
            data = mutated(rng, RESULTS[rng.choice(list(RESULTS))][1])
            data = rng.choice((data, data, rng.randbytes(300), b"", b"[" * 5000))
            time_ms = rng.choice((-1, 0, 1_700_000_000_000, 2**62, -(2**63), 2**63 - 1, 10**14))
            headers: list[tuple[str, bytes | None]] = [("a\ufffd\x1b", data[:50]), ("", None)]
            offset = outcome.tried
            records.append(
                ConsumerRecord("orders", 0, offset, time_ms, data[:99], data, headers, 0, -1)
            )
            outcome.tried += 1
        with outcome.step(data):
            model.append_tail(records, 0, 5.0)
        for row in list(model.tail.values())[:10]:
            with outcome.step(row.value or b""):
                list(view.details(row, model, Pen(120, 40, FINE)))
    return outcome


# Records of a request log.


def logged_requests(rng: Random, count: int) -> Outcome:
    """Mutated records of a request log, as the pipeline counts them: whole ones are counted all."""
    outcome = Outcome()
    while outcome.tried < count:
        honest = [
            encode(request(second, client_id=f"c{second % 3}", total_us=90 + second))
            for second in range(0, 600, 20)
        ]
        others = [_forged(rng, rng.choice(honest)) for _ in range(20)]
        outcome.tried += len(others)
        data = b" ".join(others)
        with outcome.step(data):
            values = pa.array(rng.sample([*honest, *others], 50), pa.binary())
            log = LogValues.read(values, (BEGIN + 700) * 1_000_000)
            ids = log.requests["client_id"].to_pylist()
            kept = sum(id in ("c0", "c1", "c2") for id in ids)
            assert kept >= len(honest), (kept, len(honest))
            counted = len(log.requests) + len(log.connections)
            left_out = log.malformed + log.newer + len(log.out_of_time)
            assert counted + left_out == len(values)
            judge(values)
    outcome.held_seconds = 0.0  # in Spark's processes, which have no loop
    return outcome


def _forged(rng: Random, value: bytes) -> bytes:
    """A record that may still be one, with other numbers, or that is none."""
    if rng.random() < 0.5:
        return rng.choice(BYTES)(rng, value)
    changed = bytearray(value)
    for _ in range(rng.choice((1, 2, 5))):
        at, size = rng.choice(
            ((7, 4), (11, 4), (15, 4), (19, 2), (24, 2), (26, 8), (34, 4), (66, 4))
        )
        changed[at : at + size] = rng.choice(
            (bytes(size), b"\xff" * size, b"\x7f" + b"\xff" * (size - 1), rng.randbytes(size))
        )
    return bytes(changed)


def judge(values: Any) -> None:
    """Take records through all steps of the pipeline that are not Spark's own."""
    count = len(values)
    batch = pa.RecordBatch.from_arrays(
        [
            values,
            pa.array([0] * count, pa.int32()),
            pa.array(range(count), pa.int64()),
            pa.array([(BEGIN + 700) * 1_000_000] * count, pa.timestamp("us", tz="UTC")),
        ],
        names=["value", "partition", "offset", "read_at"],
    )
    rows = list(folded([batch]))
    kept = [each.filter(pa.array(each["kind"].to_numpy() != INTAKE)) for each in rows]
    estimates = list(estimate([each for each in kept if each.num_rows]))
    found = list(signals(estimates))
    minutes = sorted({minute for each in found for minute in each["window"].to_pylist()})
    anomalies = [
        row for each in AnomalyDetector(minutes, minutes[0])(found) for row in each.to_pylist()
    ]
    IncidentTracker([]).add(minutes, sorted(anomalies, key=order))
    objective = Objective.parse("*=99.9% within 20ms")
    burned = list(ObjectiveCounter([objective])(estimates))
    list(BurnRates([objective], minutes)(burned))


Attack = Callable[[Random, int], Outcome]


def scraped(rng: Random, count: int) -> Outcome:
    """The same as :func:`scrapes`, with pages of a real broker."""
    whole = trio.run(pages)
    return trio.run(scrapes, rng, count, whole, clock=trio.testing.MockClock(autojump_threshold=0))


#: The attacks, and their shares.
ATTACKS: Final[Mapping[str, tuple[Attack, float]]] = {
    "result rows": (result_rows, 0.4),
    "scrapes": (scraped, 0.25),
    "records of any topic": (tail_records, 0.1),
    "records of a request log": (logged_requests, 0.25),
}
