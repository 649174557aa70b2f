"""A broker of several nodes in a thread, and what tests see and do of all of them."""

from __future__ import annotations

import pytest

import trionet
from support.calls import batch, produce_request
from support.client import BlockingClient
from support.leaks import nothing_left_behind
from trionet.protocol import error_codes


def produce(address: str, partition: int, value: bytes) -> int:
    """The error code of a Produce to one node."""
    client = BlockingClient(address)
    try:
        response = client.call(produce_request("t", {partition: batch(value)}), 12)
        code = response.responses[0].partition_responses[0].error_code
        assert isinstance(code, int)
        return code
    finally:
        client.socket.close()


def test_nodes_stop_and_start_and_leaders_move() -> None:
    with nothing_left_behind(), trionet.testing.broker(brokers=3, topics={"t": 3}) as broker:
        addresses = broker.bootstrap_servers.split(",")
        assert [1, 2, 3] == broker.node_ids == broker.running_nodes
        assert [1, 2, 3] == [broker.leader("t", partition) for partition in range(3)]
        assert [0] * 3 == [produce(addresses[n], n, b"%d" % n) for n in range(3)]

        broker.stop(1)
        assert ([2, 3], 2) == (broker.running_nodes, broker.leader("t", 0))
        assert error_codes.NONE == produce(addresses[1], 0, b"after")
        broker.start(1)
        broker.move_leader("t", 1, 3)
        assert error_codes.NOT_LEADER_OR_FOLLOWER == produce(addresses[1], 1, b"wrong")
        broker.elect_preferred_leaders()

        assert [1, 2, 3] == [broker.leader("t", partition) for partition in range(3)]
        assert [b"0", b"after", b"1", b"2"] == broker.values("t")


def test_a_coordinator_moves() -> None:
    with trionet.testing.broker(brokers=2) as broker:
        other = 3 - broker.coordinator("g")

        broker.move_coordinator("g", other)

        assert other == broker.coordinator("g")


def test_what_cannot_be_is_the_askers_error() -> None:
    with trionet.testing.broker(topics=["t"]) as broker:
        for ask in (broker.stop, broker.start):
            with pytest.raises(ValueError, match="node 7 does not exist; allowed: 1"):
                ask(7)
        with pytest.raises(ValueError, match="node 7 does not exist"):
            broker.move_coordinator("g", 7)
        with pytest.raises(ValueError, match="does not exist"):
            broker.leader("t", 1)
        with pytest.raises(ValueError, match="does not exist"):
            broker.move_leader("t", 1, 1)


def test_faults_meet_the_requests_of_all_nodes_or_of_one() -> None:
    with trionet.testing.broker(brokers=2, topics={"t": 2}) as broker:
        addresses = broker.bootstrap_servers.split(",")
        broker.faults.fail("Produce", "KAFKA_STORAGE_ERROR", node=2, times=None)

        codes = [produce(addresses[n], n, b"a") for n in range(2)]

        assert [error_codes.NONE, error_codes.KAFKA_STORAGE_ERROR] == codes
        assert [1, 2] == [request.node for request in broker.requests("Produce")]
