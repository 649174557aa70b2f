"""The demo's Spark on the dashboard, as a user sees it: the numbers are those of plain Python."""

from __future__ import annotations

import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import trio

import trionet
from demo.dataset import data_file, flights
from demo.telemetry import LOG
from demo.windows import windows_for
from support.computed_delays import computed_delays
from support.demo_on_screen import assert_ended, process_of, start
from support.flights_demo import files_left, own_folders, skip_without_spark
from support.process_list import descendants_of
from support.processes import SAME_TRIONET, all_of_them_end
from support.terminal import Terminal, needs_tmux, terminal
from trionet.protocol import api_keys
from trionet.protocol.request_log import CLOSED, GONE, LoggedRequest, decode

skip_without_spark()
if not hasattr(os, "pidfd_open"):
    pytest.skip("no pidfd_open on this system", allow_module_level=True)

#: Spark starts, once or twice, and a minute has to be over; beside other work that takes a while.
RESULTS_SECONDS_MAX = 500.0
pytestmark = [needs_tmux, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SPEED = 86_400.0
#: A headline, and rows below it.
DELAYS = re.compile(r" 2013-\d\d-\d\d: \d+ flights, .*[A-Z0-9]{2} +[A-Z]{3}-[A-Z]{3} ", re.DOTALL)
#: The percentiles of the pipeline are so exact.
ERROR_MAX = 1 / 128


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Terminal]:
    with terminal(160, 50, {**SAME_TRIONET, **own_folders(tmp_path)}) as found:
        yield found


def exported(screen: Terminal, path: Path) -> list[dict[str, Any]]:
    """The table on the screen, as the dashboard writes it into a file."""
    screen.type(f":export {path}")
    screen.press("Enter")
    screen.wait_for("written to")
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return rows


def leave(screen: Terminal, modes: str, address: str, folder: Path) -> str:
    """End the demo by its key; what it said last. Neither a process nor a file is left."""
    started = [each.pid for each in descendants_of(process_of(screen))]
    with all_of_them_end(started):
        screen.press("q")
        text = assert_ended(screen, modes, address)
    assert [] == files_left(folder)
    return text


def in_seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_the_page_of_delays_has_those_that_plain_python_computes(
    screen: Terminal, tmp_path: Path
) -> None:
    modes = screen.modes()
    address = start(screen, "--spark")
    screen.press("d")
    screen.wait_until(DELAYS.search, "the delays of a day", RESULTS_SECONDS_MAX)
    rows = exported(screen, tmp_path / "delays.json")
    screen.press("f")
    screen.wait_for("Delays by Spark: d has every route", "on average")
    told = leave(screen, modes, address, tmp_path)

    [(start_text, end_text)] = {(row.pop("start"), row["end"]) for row in rows}
    windows = windows_for(SPEED)
    until = in_seconds(end_text) + 2 * windows.delay
    some = takewhile(lambda flight: flight.scheduled < until, flights(data_file()))
    expected = computed_delays(some, data_file().parent, windows)
    actual = {(start_text, row.pop("carrier"), *row.pop("route").split("-")): row for row in rows}
    assert len(actual) >= 20
    assert {group: expected[group] for group in actual} == actual
    assert re.search(r"results of \d+ windows of 1 day in the topic flight-delays\.", told)


def test_the_page_of_the_pipeline_has_the_minutes_that_spark_made_of_the_request_log(
    screen: Terminal, tmp_path: Path
) -> None:
    modes = screen.modes()
    address = start(screen, "--no-spark", "--telemetry")
    screen.press("9")
    screen.wait_for("requests-results: 0 minutes")
    screen.wait_until(
        re.compile(r"requests-results: [1-9]\d* minutes").search,
        "the first minute",
        RESULTS_SECONDS_MAX,
    )
    minutes = exported(screen, tmp_path / "minutes.json")
    screen.press("Enter")
    screen.wait_for("Spark pipeline → minute", "flights-replay")
    series = exported(screen, tmp_path / "series.json")
    shown = re.search(r"→ minute (\d\d:\d\d)", screen.text())
    assert shown is not None
    log = trio.run(logged, address)
    screen.press("f")
    screen.wait_for("Telemetry by Spark: ", "requests in the minute of")
    leave(screen, modes, address, tmp_path)

    assert {row["window"]: row["requests"] for row in minutes} == {
        row["window"]: sum(map(len, log[row["window"]].values())) for row in minutes
    }
    [minute] = [window for window in log if window[11:16] == shown[1]]
    assert {(row["api"], row["client_id"], row["listener"]) for row in series} == set(log[minute])
    for row in series:
        assert_told(row, log[minute][row["api"], row["client_id"], row["listener"]])


def assert_told(row: dict[str, Any], requests: Sequence[LoggedRequest]) -> None:
    """A row of a minute says of these requests what is so."""
    times = sorted(each.total_us for each in requests)
    assert {
        "requests": len(requests),
        "errors": sum(each.error_code != 0 or each.end in {CLOSED, GONE} for each in requests),
        "total_max_us": times[-1],
    } == {name: row[name] for name in ("requests", "errors", "total_max_us")}
    for name, share in (("total_p50_us", 0.5), ("total_p99_us", 0.99)):
        exact = times[math.ceil(share * len(times)) - 1]
        assert row[name] == pytest.approx(exact, rel=ERROR_MAX, abs=1)
    assert row["requests_per_s"] == pytest.approx(len(requests) / 60)


Minute = dict[tuple[str, str, str], list[LoggedRequest]]


async def logged(bootstrap_servers: str) -> dict[str, Minute]:
    """The requests in the broker's log, by minute, then by API, client and listener."""
    found: dict[str, Minute] = defaultdict(lambda: defaultdict(list))
    async with trionet.open_consumer(bootstrap_servers, auto_offset_reset="earliest") as consumer:
        partition = trionet.TopicPartition(LOG, 0)
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        async for batch in consumer.batches():
            for request in _requests(batch.values):
                minute = datetime.fromtimestamp(request.completed_at_us // 60_000_000 * 60, UTC)
                origin = request.origin
                key = api_keys.name_of(request.api_key), origin.client_id, origin.listener
                found[f"{minute:%Y-%m-%dT%H:%M:%SZ}"][key].append(request)
            if batch.offsets[-1] + 1 >= end:
                return found
    raise AssertionError("a consumer that ends by itself")


def _requests(values: Iterable[bytes | None]) -> Iterator[LoggedRequest]:
    for value in values:
        if isinstance(found := decode(value or b""), LoggedRequest):
            yield found
