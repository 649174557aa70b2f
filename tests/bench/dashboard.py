"""The dashboard: what it costs a busy and an idle broker, and how soon the screen responds.

* busy: a broker with its dashboard open in the same process is loaded in turns with one without;
  instructions outside the kernel hardly depend on what else the machine does.
* idle: the share of a core that each takes when nobody asks for anything.
* frame: drawing 120x40 with 5,000 connections and 1,000 topics, right after the rows have changed
  (with sorting) and when they have not; with a filter, which is done in steps, the longest of frame
  and steps; processor time.
* key: from a key to the view it asks for on the screen, while the broker is fully loaded.
* paint: from the start of `trionet dashboard` to the first frame, and to the first rows, at a
  broker with 10,000 partitions and 2,000 groups; with bytecode, as after an installation. CPU
  hardly depends on what else the machine does.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import trio
from rich.color import ColorSystem

from bench.frames import api_versions
from bench.load import load, load_command, processor_seconds
from bench.measured import Figure, Measured
from bench.options import Options
from bench.request_log import can_count, instructions
from support.processes import SAME_TRIONET, first_line, running
from support.pty_program import PtyProgram, pty_program
from support.trionet_process import trionet_broker_process
from trionet import open_admin, open_broker
from trionet.dashboard.drawing._cells import UNICODE
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import ConnectionRow, TopicRow
from trionet.dashboard.sources._network_source import InProcessReader
from trionet.dashboard.terminal._ansi import Painter
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.views import all_views

RUNS = 15
SECONDS = 1.0
CONNECTIONS = 64
KEYS = 60
FRAMES = 60
LOOKS = 200
#: How long a dashboard has been there that is measured: its first look is another case.
SETTLE_SECONDS = 3.0
WITH, WITHOUT = "trionet, dashboard open", "no dashboard"
FRAME = api_versions()
_BROKER = [sys.executable, "-m", "trionet", "broker", "--listen", "127.0.0.1:0", "--memory"]
_DASHBOARD = [sys.executable, "-m", "trionet", "dashboard"]


def _or_nothing(form: str) -> object:
    return lambda value: "" if math.isnan(value) else form.format(value)


_FIGURES = tuple(
    Figure(key, heading, _or_nothing(form))  # type: ignore[arg-type] # a function of a number
    for key, heading, form in (
        ("of_without", "rate of that without", "{:.3f}"),
        ("cpu_us", "broker CPU µs/request", "{:.2f}"),
        ("instructions", "user instructions/request", "{:,.0f}"),
        ("cpu_percent", "% of a core", "{:.2f}"),
        ("cpu_ms", "CPU ms", "{:.0f}"),
        ("p50_ms", "p50 ms", "{:.2f}"),
        ("p99_ms", "p99 ms", "{:.2f}"),
        ("max_ms", "max ms", "{:.2f}"),
    )
)


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(f"the dashboard, {CONNECTIONS} connections at full load", _FIGURES)
    if options.wants_case("frame"):
        _frames(measured)
    with contextlib.ExitStack() as stack:
        if any(options.wants_case(case) for case in ("busy", "idle", "key")):
            plain, process = stack.enter_context(trionet_broker_process())
            watched = stack.enter_context(pty_program([*_BROKER, "--dashboard"], SAME_TRIONET))
            port = _port(watched)
            time.sleep(SETTLE_SECONDS)
            if options.wants_case("busy"):
                sides = {WITHOUT: (_port_of(plain), process.pid), WITH: (port, watched.process.pid)}
                _busy(measured, sides, options)
            if options.wants_case("idle"):
                _idle(measured, {WITHOUT: process.pid, WITH: watched.process.pid}, options)
            if options.wants_case("key"):
                _keys(measured, watched, port)
    if options.wants_case("paint"):
        _paint(measured, options)
    return measured


def _add(measured: Measured, case: str, side: str, figures: dict[str, float]) -> None:
    measured.add(case, side, {figure.key: figures.get(figure.key, math.nan) for figure in _FIGURES})


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def _port(program: PtyProgram) -> int:
    """The port of a broker that has its dashboard on the screen."""
    program.wait_for("Overview")
    line = program.shown().partition("trionet broker ready: ")[2].split()[0]
    return _port_of(line)


# A busy and an idle broker.


def _busy(measured: Measured, sides: dict[str, tuple[int, int]], options: Options) -> None:
    """Without, with, without, with, …, without."""
    counts = can_count()
    if not counts:
        measured.skipped["instructions"] = "perf is not there, or may not count them"

    def one(side: str) -> dict[str, float]:
        port, pid = sides[side]
        before = processor_seconds(pid)
        with instructions(pid) if counts else contextlib.nullcontext([0]) as counted:
            found = load(port, CONNECTIONS, options.seconds, FRAME)
        found["cpu_us"] = (processor_seconds(pid) - before) * 1e6 / found["requests"]
        found["instructions"] = counted[0] / found["requests"] if counts else math.nan
        return found

    before = one(WITHOUT)
    for _ in range(options.runs):
        watched, after = one(WITH), one(WITHOUT)
        watched["of_without"] = watched["rate"] * 2 / (before["rate"] + after["rate"])
        after["of_without"] = 1.0
        _add(measured, "busy", WITHOUT, after)
        _add(measured, "busy", WITH, watched)
        before = after


def _idle(measured: Measured, pids: dict[str, int], options: Options) -> None:
    seconds = 5 * options.seconds
    before = {side: processor_seconds(pid) for side, pid in pids.items()}
    time.sleep(seconds)
    for side, pid in pids.items():
        percent = (processor_seconds(pid) - before[side]) * 100 / seconds
        _add(measured, "idle", side, {"cpu_percent": percent})


# Frames.


def _frames(measured: Measured) -> None:
    model = _large()
    trio.run(_fold, model)
    for view, sort, filter in (
        ("connections", "idle_seconds", ""),
        ("connections", "idle_seconds", "client-9 !10.0.7"),
        ("topics", "records", ""),
        ("overview", None, ""),
    ):
        case = f"frame of {view}, filter" if filter else f"frame of {view}"
        for changes, suffix in ((False, ""), (True, ", new rows")):
            found = _drawn(model, view, sort, filter, changes=changes)
            _add(measured, case + suffix, WITH, _quantiles(found))


def _drawn(model: Model, view: str, sort: str | None, filter: str, *, changes: bool) -> list[float]:
    ui, painter, found = Ui(all_views(), view), Painter(ColorSystem.EIGHT_BIT, "utf-8"), []
    if sort is not None:
        draw(ui, model, 120, 40, UNICODE)
        ui.current.sort_by(sort)
    ui.current.filter = filter
    for second in range(FRAMES):
        if changes:
            for section in (model.connections, model.topics):
                section.update({}, float(second))
        pieces = [_processor_time(lambda: painter.paint(draw(ui, model, 120, 40, UNICODE).lines))]
        while ui.current.is_updating:
            pieces.append(_processor_time(ui.current.step))
        found.append(max(pieces))
    return found[1:]


def _processor_time(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


async def _fold(model: Model) -> None:
    """Histories of a broker that is used."""
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        with broker.watch() as metrics:
            for second in range(LOOKS):
                await admin.list_topics()
                model.update_network(await InProcessReader(metrics).take(), float(second))


def _large() -> Model:
    """5,000 connections and 1,000 topics."""
    model = Model()
    rows = {}
    for number in range(5000):
        values: dict[str, object] = {
            "number": number,
            "id": f"127.0.0.1:9092-10.0.{number % 250}.7:{number}-0-{number}",
            "peer": f"10.0.{number % 250}.7:{10_000 + number}",
            "listener": "PLAINTEXT",
            "processor": number % 3,
            "principal": "User:ANONYMOUS",
            "software": "apache-kafka-java",
            "software_version": "4.3.1",
            "client_id": f"client-{number % 97}",
            "age_seconds": number / 7,
            "idle_seconds": (number * 7919 % 5000) / 100,
            "requests": number * 31 % 9973,
            "bytes_received": number * 1000,
            "bytes_sent": number * 2000,
            "is_muted": False,
            "mute_state": "NOT_MUTED",
            "phase": "idle",
            "staged": 0,
        }
        names = [field.name for field in attrs.fields(ConnectionRow)]
        made: Any = {name: values.get(name) for name in names}
        rows[number] = ConnectionRow(**made)
    model.connections.replace(rows, 1.0)
    topics = {
        name: TopicRow(name, "AAAA", False, 10, 3, 0, 0, 1024, 5000, 12.5)
        for name in (f"topic-{number * 7919 % 1000:04}" for number in range(1000))
    }
    model.topics.replace(topics, 1.0)
    return model


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50_ms": ordered[len(ordered) // 2] * 1000,
        "p99_ms": ordered[int(len(ordered) * 0.99)] * 1000,
        "max_ms": ordered[-1] * 1000,
    }


# Keys and first frames.


def _keys(measured: Measured, watched: PtyProgram, port: int) -> None:
    titles = itertools.cycle((("3", "APIs"), ("4", "Processors and queues"), ("7", "Quotas")))
    found = []
    with load_command(port, CONNECTIONS, 3600, FRAME) as command, running(command):
        time.sleep(1)
        for key, title in itertools.islice(titles, KEYS):
            mark, began = watched.mark, time.perf_counter()
            watched.press(key)
            found.append(watched.wait_for(title, mark) - began)
            time.sleep(0.05)
    _add(measured, "key", WITH, _quantiles(found))


@contextlib.contextmanager
def _large_broker() -> Iterator[tuple[str, str]]:
    """A broker with 10,000 partitions and 2,000 groups, and its metrics."""
    from pathlib import Path

    program = Path(__file__).parent / "servers" / "broker_with_much.py"
    with running([sys.executable, str(program)], env=SAME_TRIONET) as process:
        server, url = first_line(process).split()
        yield server, url


def _paint(measured: Measured, options: Options) -> None:
    with _large_broker() as (server, url):
        for view, row in (("topics", "topic-0000"), ("groups", "group-0000")):
            for run in range(max(1, options.runs // 3) + 1):
                command = [*_DASHBOARD, server, "--metrics", url, "--view", view]
                began = time.perf_counter()
                with pty_program(command, SAME_TRIONET) as program:
                    frame = _until(program, "quit", began)
                    rows = _until(program, row, began)
                if not run:
                    continue  # it has written the bytecode
                _add(measured, "paint, first frame", WITH, frame)
                _add(measured, f"paint, first {view}", WITH, rows)


def _until(program: PtyProgram, text: str, began: float) -> dict[str, float]:
    """How long it took until a text was on the screen, and how much of a processor."""
    seconds = program.wait_for(text) - began
    return {"p50_ms": seconds * 1000, "cpu_ms": processor_seconds(program.process.pid) * 1000}
