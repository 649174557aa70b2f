"""A broker in a thread beside tools that stop the clock of the program under test."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import freezegun
import pytest
import time_machine

import trionet
from support.calls import batch, fetch_request, only_partition, produce_request, values_of
from support.client import BlockingClient
from support.processes import SAME_TRIONET
from trionet.protocol import error_codes
from trionet.testing import ThreadedBroker
from trionet.testing import _system_clock as system_clock

Stop = Callable[[str], AbstractContextManager[Any]]

STOPPED: list[Stop] = [freezegun.freeze_time, lambda at: time_machine.travel(at, tick=False)]
tools = pytest.mark.parametrize("stop", STOPPED, ids=["freezegun", "time-machine"])
# One at which records of today are in the future, and one at which they are old.
times = pytest.mark.parametrize("at", ["2001-01-01", "2040-01-01"])


def use(broker: ThreadedBroker) -> list[bytes | None]:
    """Produce, wait for what does not come, wait for a delayed response, and read."""
    with BlockingClient(broker.bootstrap_servers) as client:
        [response] = client.call(produce_request("t", batch(b"a")), 9).responses
        assert error_codes.NONE == response.partition_responses[0].error_code
        end = fetch_request({"t": {0: 1}}, max_wait_ms=20)
        assert [] == values_of(only_partition(client.call(end, 12)))
        broker.faults.delay("Fetch", 0.02)
        return values_of(only_partition(client.call(fetch_request({"t": {0: 0}}), 12)))


@times
@tools
@pytest.mark.parametrize("when", ["before the broker", "while it runs"])
def test_a_broker_goes_on_when_time_stands_still(stop: Stop, at: str, when: str) -> None:
    before_ms = time.time_ns() // 1_000_000
    around, inside = (
        (stop(at), nullcontext()) if when == "before the broker" else (nullcontext(), stop(at))
    )

    with around, trionet.testing.broker(topics=["t"]) as broker, inside:
        assert [b"a"] == use(broker)
        requests = broker.requests()
        loop = broker.statistics().loop

    assert ["Produce", "Fetch", "Fetch"] == [request.api for request in requests]
    after_ms = time.time_ns() // 1_000_000
    assert all(before_ms <= request.time_ms <= after_ms for request in requests)
    assert 0 < loop.seconds <= (after_ms - before_ms) / 1000 + 1


@times
@tools
def test_times_of_the_broker_are_those_of_the_system(stop: Stop, at: str) -> None:
    before_ms = time.time_ns() // 1_000_000

    with stop(at):
        now_ms = system_clock.now_ms()
        assert time.time() == time.time() != now_ms / 1000

    assert before_ms <= now_ms <= time.time_ns() // 1_000_000


def test_the_log_shows_what_was_said_since_a_time_of_the_broker() -> None:
    with freezegun.freeze_time("2001-01-01"), trionet.testing.broker() as broker:
        since_ms = system_clock.now_ms()
        broker._call(lambda: logging.getLogger("trionet.broker").warning("something is wrong"))

        assert "WARNING trionet.broker: something is wrong" == broker.log(since_ms=since_ms)


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=SAME_TRIONET,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


IMPORTED_LATER = """
import freezegun

with freezegun.freeze_time("2001-01-01"):
    import trionet

    with trionet.testing.broker() as broker:
        broker.faults.delay("Metadata", 0.01)
        with trionet.testing.raw_peer(broker.bootstrap_servers) as peer:
            from trionet.protocol.messages.metadata import MetadataRequest

            print(len(peer.call(MetadataRequest(topics=[]), 9).brokers))
"""


@pytest.mark.slow
def test_a_broker_goes_on_too_when_it_is_imported_while_time_stands_still() -> None:
    ran = run(IMPORTED_LATER)

    assert ("1\n", "", 0) == (ran.stdout, ran.stderr, ran.returncode)
