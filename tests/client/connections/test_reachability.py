"""Causes are logged when they are new, and summed up in a sentence for errors."""

from __future__ import annotations

import logging

import attrs
import pytest
import trio
from trio.testing import MockClock

from trionet.client._node import COORDINATOR_ID_BASE, Node
from trionet.client.connections._reachability import Reachability
from trionet.client.metadata._cluster import Cluster
from trionet.errors import CallTimedOutError

SERVERS = Cluster.bootstrap([("one", 9092), ("two", 9092)])
ONE, TWO = SERVERS.nodes.values()
BROKER = Node(1, "kafka", 9092)
KNOWN = Cluster(nodes={1: BROKER, 2: Node(2, "other", 9092)})
REFUSED = "connection refused"


@pytest.fixture
def reachability() -> Reachability:
    return Reachability()


# The log.


def test_a_cause_is_logged_once_however_often_it_is_met(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        reachability.failed(ONE, REFUSED)

    [warning] = caplog.records
    assert "could not connect to one:9092 (bootstrap): connection refused" == warning.message
    assert logging.WARNING == warning.levelno


def test_another_cause_or_another_node_is_logged(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    reachability.failed(ONE, REFUSED)
    reachability.failed(ONE, "no route to host")
    reachability.failed(TWO, REFUSED)

    assert 3 == len(caplog.records)


def test_a_cause_is_logged_again_after_the_node_was_reached(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    reachability.failed(ONE, REFUSED)
    reachability.reached(ONE)
    reachability.failed(ONE, REFUSED)

    assert 2 == len(caplog.records)


def test_both_connections_of_a_coordinator_have_one_cause(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    reachability.failed(BROKER, REFUSED)
    reachability.failed(attrs.evolve(BROKER, id=COORDINATOR_ID_BASE - 1), REFUSED)

    assert 1 == len(caplog.records)


def test_an_advertised_address_that_never_worked_is_called_one(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    reachability.failed(BROKER, REFUSED)
    reachability.reached(BROKER)
    reachability.failed(BROKER, REFUSED)

    first, second = (each.message for each in caplog.records)
    hint = "; broker 1 advertises that address (advertised.listeners)"
    assert "could not connect to kafka:9092 (node 1): connection refused" == second
    assert first == second + hint


# The sentence.


def test_nothing_is_wrong_before_anything_was_tried(reachability: Reachability) -> None:
    assert "" == reachability.problem(SERVERS)


def test_all_bootstrap_servers_are_named(reachability: Reachability) -> None:
    reachability.failed(ONE, REFUSED)
    expected = "no bootstrap broker could be reached (one:9092: connection refused; two:9092: {})"

    assert expected.format("no response yet") == reachability.problem(SERVERS)
    reachability.failed(TWO, "no route to host")
    assert expected.format("no route to host") == reachability.problem(SERVERS)


def test_many_are_counted(reachability: Reachability) -> None:
    many = Cluster.bootstrap([(f"host{number}", 9092) for number in range(5)])
    for each in many.nodes.values():
        reachability.failed(each, REFUSED)

    assert "host2:9092: connection refused and 2 more)" in reachability.problem(many)


def test_a_bootstrap_server_that_fails_beside_one_that_works_is_no_problem(
    reachability: Reachability,
) -> None:
    reachability.failed(ONE, REFUSED)

    assert "" == reachability.problem(KNOWN)


def test_advertised_addresses_are_the_problem_even_when_the_client_begins_anew(
    reachability: Reachability,
) -> None:
    """As it does again and again while no broker can be reached, and a bootstrap server can."""
    reachability.failed(ONE, REFUSED)
    reachability.failed(BROKER, REFUSED)
    problem = (
        "broker 1 advertises kafka:9092 (advertised.listeners), which cannot be reached:"
        " connection refused"
    )

    assert problem == reachability.problem(KNOWN)
    assert problem == reachability.problem(SERVERS)
    reachability.failed(TWO, REFUSED)
    assert reachability.problem(SERVERS).startswith("no bootstrap broker could be reached")


def test_a_broker_that_worked_before_does_not_advertise_a_wrong_address(
    reachability: Reachability,
) -> None:
    reachability.reached(BROKER)
    reachability.failed(BROKER, REFUSED)

    expected = "broker 1 at kafka:9092 cannot be reached: connection refused"
    assert expected == reachability.problem(KNOWN)


def test_a_broker_that_left_the_cluster_is_forgotten(reachability: Reachability) -> None:
    reachability.failed(Node(3, "gone", 9092), REFUSED)
    reachability.forget_departed(KNOWN)

    assert "" == reachability.problem(KNOWN)


# Waits.


def a_problem() -> str:
    return "nothing works"


def no_problem() -> str:
    return ""


async def wait(reachability: Reachability) -> None:
    with reachability.until_reached(60, a_problem):
        await trio.sleep_forever()


async def test_a_wait_ends_if_no_broker_was_ever_reached(
    autojump_clock: MockClock, reachability: Reachability
) -> None:
    """A bootstrap server is not yet a broker of the cluster."""
    reachability.reached(ONE)
    with pytest.raises(CallTimedOutError, match="= 60000: nothing works"):
        await wait(reachability)

    assert 60 == trio.current_time()


async def test_short_waits_add_up_and_begin_anew_after_the_error(
    autojump_clock: MockClock, reachability: Reachability
) -> None:
    for expected in (60, 120):
        while trio.current_time() < expected - 7:
            with trio.move_on_after(7):
                await wait(reachability)
        with pytest.raises(CallTimedOutError):
            await wait(reachability)

        assert expected == trio.current_time()


async def test_a_wait_goes_on_once_a_broker_was_reached(
    autojump_clock: MockClock, reachability: Reachability
) -> None:
    async def respond() -> None:
        await trio.sleep(59)
        reachability.reached(BROKER)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(respond)
        with reachability.until_reached(60, a_problem):
            await trio.sleep(1000)
        with reachability.until_reached(60, a_problem):
            await trio.sleep(1000)


async def test_a_wait_with_nothing_wrong_is_begun_again(
    autojump_clock: MockClock, reachability: Reachability
) -> None:
    """As for a topic that does not exist yet: its caller loops."""
    with reachability.until_reached(60, no_problem):
        await trio.sleep(1000)

    assert 60 == trio.current_time()
