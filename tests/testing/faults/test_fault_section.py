"""The faults of a broker under test, as a dashboard lists, injects and removes them."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from trionet import Broker, open_broker, open_producer
from trionet.errors import ApiError
from trionet.server.metrics._http_exchange import Refused
from trionet.testing import ThreadedBroker, control
from trionet.testing.faults._interception import INJECTED_MAX
from trionet.testing.faults._spoken_faults import inject


def rows(broker: Broker) -> list[Any]:
    with broker.watch() as metrics:
        return list(metrics.streams["faults"]({})(100, None).rows)


def order(broker: Broker, path: str, **parameters: str) -> object:
    with broker.watch() as metrics:
        return metrics.orders[path](parameters)


async def test_a_fault_is_listed_with_what_the_client_did_then() -> None:
    async with (
        open_broker() as broker,
        open_producer(broker.bootstrap_servers, client_id="app") as producer,
    ):
        await producer.send("t", b"before")
        under_test = control(broker)
        under_test.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t")
        [armed] = rows(broker)
        await producer.send("t", b"one")

        assert ("armed", "Produce, topic t", "fail with NOT_LEADER_OR_FOLLOWER", 0, 1) == (
            armed["state"],
            armed["which"],
            armed["action"],
            armed["hits"],
            armed["times"],
        )
        [row] = rows(broker)
        assert ("over", 1) == (row["state"], row["hits"])
        [request] = row["requests"]
        assert ("Produce", "app", ("NOT_LEADER_OR_FOLLOWER",)) == (
            request["api"],
            request["client_id"],
            request["errors"],
        )
        assert "retried after " in request["reaction"]
        assert request["reaction"].endswith(": ok")


async def test_a_fault_is_injected_and_removed_from_outside() -> None:
    async with (
        open_broker() as broker,
        open_producer(broker.bootstrap_servers) as producer,
        trio.open_nursery() as nursery,
    ):
        await producer.send("t", b"before")
        under_test = control(broker)
        order(broker, "/faults/inject", fault="hold", apis="Produce")
        nursery.start_soon(producer.send, "t", b"held")
        await under_test.wait_for_requests("Produce")
        assert ["holding"] == [row["state"] for row in rows(broker)]

        order(broker, "/faults/remove", number="1")

        await under_test.wait_for_records("t", 2)
        assert ["removed"] == [row["state"] for row in rows(broker)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"fault": "nonsense"}, "'nonsense' is not a fault; allowed: an error such as"),
        ({"fault": "NOT_AN_ERROR"}, "unknown error 'NOT_AN_ERROR'"),
        ({"fault": "delay"}, "delay takes a number, as in delay 1"),
        ({"fault": "delay soon"}, "delay soon is not allowed; delay takes a number of seconds"),
        ({"fault": "throttle inf"}, "throttle takes a whole number of milliseconds"),
        ({"fault": "throttle 1.9"}, "throttle takes a whole number of milliseconds"),
        ({"fault": "throttle 2147483648", "apis": "Fetch"}, "it must be 0 to 2147483647"),
        ({"fault": "close", "client": "x"}, "'client' is not allowed; .* client_id; allowed: "),
        ({"fault": "full-disk", "times": "3"}, "full-disk does not take times; allowed: topic"),
        (
            {"fault": "stop-reading", "topic": "t"},
            "stop-reading does not take topic; allowed: client_id, connection",
        ),
        ({"fault": "close now"}, "close takes nothing after it"),
        ({"fault": "close", "apis": "Prodjuce"}, "the closest match is Produce"),
        (
            {"fault": "close", "times": "0"},
            "times = '0' is not allowed; allowed: 1 or more, or all",
        ),
        ({"fault": "corrupt", "apis": "Metadata"}, "Metadata carries no records"),
        ({}, "'' is not a fault"),
    ],
    ids=str,
)
async def test_what_is_not_allowed_is_refused(words: dict[str, str], message: str) -> None:
    async with open_broker() as broker:
        control(broker)

        with pytest.raises(Refused, match=message):
            order(broker, "/faults/inject", **words)
        assert [] == rows(broker)
        with pytest.raises(Refused, match="there is no fault number '7'"):
            order(broker, "/faults/remove", number="7")


async def test_a_broker_that_is_not_under_test_has_no_faults() -> None:
    async with open_broker() as broker:
        with broker.watch() as metrics:
            assert "faults" not in metrics.streams
            assert "/faults/inject" not in metrics.orders


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("REQUEST_TIMED_OUT", "fail with REQUEST_TIMED_OUT"),
        ("delay 0.5", "delay for 0.5 s"),
        ("hold", "hold"),
        ("swallow", "swallow"),
        ("close", "close the connection"),
        ("reset", "reset the connection"),
        ("cut", "cut the response at 0.5"),
        ("corrupt", "flip a bit in the records"),
        ("throttle 100", "throttle for 100 ms, muted"),
        ("full-disk", "fail with KAFKA_STORAGE_ERROR"),
        ("stop-reading", "hold"),
    ],
)
def test_words_are_faults(broker: ThreadedBroker, words: str, action: str) -> None:
    fault = inject(broker.faults, {"fault": words})

    assert action == fault.action
    fault.remove()


def test_a_fault_is_limited_to_what_is_said(broker: ThreadedBroker) -> None:
    words = {"apis": "Produce, Fetch", "times": "3", "client_id": "app", "topic": "t"}
    fault = inject(broker.faults, {"fault": "close", **words})

    assert "Fetch, Produce, topic t, client_id app" == str(fault.which)
    assert 3 == fault.times
    assert None is inject(broker.faults, {"fault": "close", "times": "all"}).times
    broker.faults.clear()


async def test_a_fault_in_effect_is_listed_however_many_are_over() -> None:
    async with open_broker() as broker:
        faults = control(broker).faults
        held = faults.hold("FindCoordinator")
        for _ in range(INJECTED_MAX + 10):
            faults.fail("InitProducerId", "REQUEST_TIMED_OUT").remove()

        found = rows(broker)
        assert INJECTED_MAX == len(found)
        assert (1, "armed") == (found[-1]["number"], found[-1]["state"])
        order(broker, "/faults/remove", number="1")
        assert held.is_removed
        with pytest.raises(Refused):
            order(broker, "/faults/remove", number="2")


async def test_a_fault_of_a_test_may_be_removed_by_either() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        under_test = control(broker)
        order(broker, "/faults/inject", fault="INVALID_TOPIC_EXCEPTION", apis="Produce")
        [fault] = under_test.faults.active
        fault.remove()

        await producer.send("t", b"unharmed")
        order(broker, "/faults/inject", fault="INVALID_TOPIC_EXCEPTION", apis="Produce")
        with pytest.raises(ApiError):
            await producer.send("t", b"harmed")
