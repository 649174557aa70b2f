from __future__ import annotations

from typing import Any

import attrs
import pytest

from demo.figures import HISTORY_LENGTH, Sample, Window
from trionet import open_broker
from trionet.broker import BrokerStatistics


async def statistics() -> BrokerStatistics:
    async with open_broker() as broker:
        return broker.statistics()


def sample(seconds: float, begin: BrokerStatistics, **counts: Any) -> Sample:
    """A moment at which ``counts`` were reached: of records, bytes, seconds of waiting, calls."""
    server = attrs.evolve(
        begin.server,
        bytes_received=begin.server.bytes_received + counts.get("bytes_in", 0),
        bytes_sent=begin.server.bytes_sent + counts.get("bytes_out", 0),
    )
    loop = attrs.evolve(
        begin.loop,
        seconds=begin.loop.seconds + seconds,
        idle_seconds=begin.loop.idle_seconds + counts.get("idle", 0),
    )
    return Sample(
        seconds,
        attrs.evolve(begin, server=server, loop=loop, calls=counts.get("calls", {})),
        {"produced": counts.get("produced", 0), "clock": "2013-01-01 05:15"},
        {
            "consumed": counts.get("consumed", 0),
            "end": counts.get("produced", 0),
            "committed": counts.get("committed", 0),
            "delay_p50_ms": 3,
            "delay_p99_ms": 9,
            "generation": 4,
            "members": counts.get("members", {}),
        },
    )


async def test_rates_are_those_of_the_last_second() -> None:
    begin = await statistics()
    window = Window(sample(0, begin))
    window.add(sample(1, begin, produced=1000, consumed=900, bytes_in=5000))

    actual = window.add(sample(2, begin, produced=3000, consumed=3000, bytes_in=6000, bytes_out=8))

    assert (3000, 2000.0, 2100.0) == (actual.produced, actual.produced_rate, actual.consumed_rate)
    assert (1000.0, 8.0) == (actual.bytes_in_rate, actual.bytes_out_rate)


async def test_the_loop_is_idle_for_the_share_of_the_last_second_that_it_waited() -> None:
    begin = await statistics()
    window = Window(sample(0, begin))
    window.add(sample(1, begin, idle=1.0))

    actual = window.add(sample(2, begin, idle=1.25))

    assert pytest.approx(0.25) == actual.idle_ratio


async def test_requests_are_counted_per_api_also_those_that_are_new() -> None:
    begin = await statistics()
    window = Window(sample(0, begin))

    actual = window.add(sample(2, begin, calls={"Fetch": 10, "Produce": 4}))

    assert {"Fetch": 5.0, "Produce": 2.0} == actual.request_rates
    assert 7.0 == actual.requests_rate


async def test_the_histories_end_with_the_newest_moment() -> None:
    begin = await statistics()
    window = Window(sample(0, begin))
    window.add(sample(1, begin, produced=100))

    actual = window.add(sample(2, begin, produced=150, consumed=20))

    assert {
        "produced_rate": (100.0, 50.0),
        "consumed_rate": (0.0, 20.0),
        "lag": (100, 130),
        "commit_lag": (100, 150),
        "delay_p99": (9, 9),
    } == actual.histories
    assert (1, 2) == actual.times


async def test_what_is_produced_consumed_and_committed_is_of_one_moment() -> None:
    """The producer's report may be older than the consumers'."""
    begin = await statistics()
    consumers = {"end": 840, "consumed": 839, "committed": 700}
    window = Window(Sample(0, begin, {"produced": 0}, {}))

    actual = window.add(Sample(1, begin, {"produced": 701}, consumers))

    assert (840, 839, 1) == (actual.produced, actual.consumed, actual.lag)
    assert (700, 140) == (actual.committed, actual.commit_lag)


async def test_before_the_consumers_report_there_is_what_the_producer_does() -> None:
    begin = await statistics()

    actual = Window(Sample(0, begin, {}, {})).add(Sample(1, begin, {"produced": 701}, {}))

    assert (701, 0, 701) == (actual.produced, actual.consumed, actual.lag)


async def test_the_histories_are_bounded() -> None:
    begin = await statistics()
    window = Window(sample(0, begin))
    for seconds in range(HISTORY_LENGTH + 5):
        window.add(sample(seconds, begin))

    figures = window.add(sample(HISTORY_LENGTH + 5, begin))

    assert {HISTORY_LENGTH} == {len(values) for values in figures.histories.values()}


@pytest.mark.parametrize(
    ("members", "is_divided"),
    [
        ({"one": [0, 2], "two": [1]}, True),
        ({"one": [0, 1, 2], "two": []}, True),
        ({"one": [0], "two": [1]}, False),
        ({"one": [0, 1, 2], "two": [1]}, False),
        ({}, False),
    ],
    ids=["all", "one has none", "nobody has one", "two have one", "nobody is there"],
)
async def test_the_partitions_are_divided_when_each_has_one_reader(
    members: dict[str, list[int]], is_divided: bool
) -> None:
    begin = await statistics()
    figures = Window(sample(0, begin)).add(sample(1, begin, members=members))

    assert is_divided == figures.is_divided(3)


async def test_before_the_first_reports_there_are_zeros() -> None:
    begin = await statistics()
    window = Window(Sample(0, begin, {}, {}))

    actual = window.add(Sample(0, begin, {}, {}))

    assert (0, 0, 0, None) == (actual.produced, actual.consumed, actual.lag, actual.delay_p50)
    assert (0, {}) == (actual.generation, actual.members)
