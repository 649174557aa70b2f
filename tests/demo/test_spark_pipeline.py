"""The demo's pipeline as it runs: Spark in a process of its own, the data set's first days."""

from __future__ import annotations

import json
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import trio

import trionet
from demo.analysis import RESULTS
from demo.child import open_child
from demo.dataset import Flight, data_file, flights
from demo.windows import windows_for
from support.computed_delays import Group, computed_delays
from support.flights_demo import skip_without_spark
from trionet.testing._threaded import ThreadedBroker

skip_without_spark()

#: Spark starts twice in a test; beside other work that takes minutes.
SECONDS_MAX = 900
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(SECONDS_MAX)]

SPEED = 86_400.0
#: Some eight days; the middle of them.
FLIGHTS, MIDDLE, LATE = 7_000, 3_300, 100


async def analyse(broker: ThreadedBroker, folder: Path, *, is_killed: bool = False) -> int:
    """Let the pipeline take what is there; how many groups of flights came too late for it."""
    arguments = (broker.bootstrap_servers, "flights", RESULTS, str(SPEED), str(folder))
    async with open_child("pipeline", *arguments) as child:
        if is_killed:  # in the middle of whatever it does, with something done
            first = partial(broker.wait_for_records, RESULTS, seconds=SECONDS_MAX)
            await trio.to_thread.run_sync(first)
            return 0
        await child.stop()
    late: int = child.latest["late"]
    return late


def results(broker: ThreadedBroker) -> dict[Group, dict[str, Any]]:
    """By group: what the topic of results has; what is there twice must be the same."""
    found: dict[Group, dict[str, Any]] = {}
    for record in broker.records(RESULTS):
        value = json.loads(record.value or b"")
        start, carrier, origin, dest = (
            value.pop(name) for name in ("start", "carrier", "origin", "dest")
        )

        assert value == found.setdefault((start, carrier, origin, dest), value)
    return found


def put(broker: ThreadedBroker, some: list[Flight]) -> None:
    broker.seed("flights", [(flight.carrier, flight.value) for flight in some])


def test_the_results_are_those_of_plain_python_also_after_a_crash(tmp_path: Path) -> None:
    days = list(islice(flights(data_file()), FLIGHTS))
    expected = computed_delays(days, data_file().parent, windows_for(SPEED))
    with trionet.testing.broker(topics={"flights": 6, RESULTS: 1}) as broker:
        put(broker, days[:MIDDLE])
        trio.run(lambda: analyse(broker, tmp_path, is_killed=True))
        # Of the first day, whose results are there: once more they come too late.
        put(broker, days[MIDDLE:] + days[:LATE])
        late = trio.run(lambda: analyse(broker, tmp_path))
        actual = results(broker)

    assert len({start for start, *_ in expected}) >= 5
    assert expected == actual
    assert late == len(
        {(each.carrier, each.fields["dest"], each.fields["origin"]) for each in days[:LATE]}
    )
