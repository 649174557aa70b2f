"""Faults of one node of several, and what is asked of all of them."""

from __future__ import annotations

import trionet
from support.calls import batch, produce_request
from trionet.protocol import error_codes
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.testing import control, open_raw_peer


async def test_a_fault_may_name_a_node() -> None:
    async with trionet.open_broker(brokers=3) as broker:
        kit = control(broker)
        await kit.create_topic("t", 3)
        fault = kit.faults.fail("Metadata", "LEADER_NOT_AVAILABLE", node=2, times=None)
        codes = {}
        for node in broker.node_ids:
            async with open_raw_peer(broker.endpoints_of(node)[0].address) as peer:
                [topic] = (await peer.call(MetadataRequest(topics=None), 12)).topics
                codes[node] = topic.error_code

        assert {1: 0, 2: error_codes.LEADER_NOT_AVAILABLE, 3: 0} == codes
        assert 1 == fault.hits
        assert [1, 2, 3] == [request.node for request in kit.requests("Metadata")]
        assert [2] == [request.node for request in kit.requests("Metadata", node=2)]


async def test_records_of_all_nodes_are_there() -> None:
    async with trionet.open_broker(brokers=3) as broker:
        kit = control(broker)
        await kit.create_topic("t", 3)
        await kit.seed("t", ["a", "b", "c"])
        leader = broker.leader("t", 1)
        async with open_raw_peer(broker.endpoints_of(leader)[0].address) as peer:
            await peer.call(produce_request("t", {1: batch(b"d")}), 12)

        assert [b"a", b"b", b"d", b"c"] == kit.values("t")
        assert {1, 2, 3} == {broker.leader("t", index) for index in range(3)}


async def test_connections_of_one_node_are_reset() -> None:
    async with trionet.open_broker(brokers=2) as broker:
        kit = control(broker)
        first, second = (broker.endpoints_of(node)[0].address for node in broker.node_ids)
        async with open_raw_peer(first) as one, open_raw_peer(second) as other:
            request = FindCoordinatorRequest(coordinator_keys=["g"])
            await one.call(request, 4)
            await other.call(request, 4)

            count = kit.faults.reset_connections(node=2)

            assert 1 == count
            assert b"" == await other.receive_to_end()
            assert 1 == len((await one.call(request, 4)).coordinators)
            assert [1] == [each.node for each in kit.connections()]
