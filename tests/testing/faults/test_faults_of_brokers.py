"""What happens to a whole broker on demand, seen by those who speak to it.

Faults of one node of several, and what is asked of all of them.
"""

from __future__ import annotations

import pytest
import trio

import trionet
from support.calls import batch, fetch_request, produce_request
from support.faulty import METADATA, produce
from trionet.protocol import error_codes
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest
from trionet.protocol.messages.heartbeat import HeartbeatRequest
from trionet.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.protocol.messages.offset_commit import OffsetCommitRequest
from trionet.testing import BlockingRawPeer, ThreadedBroker, control, open_raw_peer, raw_peer


def test_nothing_is_read_until_the_fault_is_removed(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    produce(peer)
    fault = broker.faults.stop_reading()
    peer.send(METADATA, 12)
    with raw_peer(broker.bootstrap_servers) as newcomer:
        newcomer.send(METADATA, 12)
        peer.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            peer.receive_frame()
        peer.socket.settimeout(30)
        assert [] == broker.requests("Metadata")

        fault.remove()

        assert 1 == len(peer.receive().brokers)
        assert 1 == len(newcomer.receive().brokers)


def test_one_client_is_not_read_and_the_others_are(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    with raw_peer(broker.bootstrap_servers, "other") as other:
        produce(peer)
        produce(other)
        broker.forget_requests()
        fault = broker.faults.stop_reading(client_id="me")
        peer.send(METADATA, 12)

        assert 1 == len(other.call(METADATA, 12).brokers)
        assert [] == broker.requests("Metadata", client_id="me")
        fault.remove()
        assert 1 == len(peer.receive().brokers)


def test_of_a_connection_whose_request_is_served_one_more_is_read_and_kept(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    peer.send(fetch_request({"t": {0: 0}}, max_wait_ms=2**31 - 1), 12)
    [request] = broker.wait_for_requests("Fetch")
    fault = broker.faults.stop_reading(connection=request.connection)
    peer.send(METADATA, 12)
    broker.seed("t", [{"value": "a", "partition": 0}])
    assert 0 == peer.receive().error_code
    broker.wait_for_requests("Metadata")

    assert [None] == [each.errors for each in broker.requests("Metadata")]
    fault.remove()
    assert 1 == len(peer.receive().brokers)


def test_connections_are_reset(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    with raw_peer(broker.bootstrap_servers, "other") as other:
        produce(peer)
        produce(other)
        broker.forget_requests()

        count = broker.faults.reset_connections(client_id="me")

        assert 1 == count
        with pytest.raises(ConnectionResetError):
            peer.socket.recv(1)
        assert error_codes.NONE == produce(other)
        assert 1 == broker.faults.reset_connections()
        with pytest.raises(ConnectionResetError):
            other.socket.recv(1)


def test_clients_of_closed_connections_are_forgotten(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    produce(peer)
    interception = broker._interception
    interception.clients |= {f"closed {number}": "old" for number in range(1000)}

    with raw_peer(broker.bootstrap_servers, "new") as other:
        produce(other)

        assert ["me", "new"] == list(interception.clients.values())
        assert 1 == broker.faults.reset_connections(client_id="me")


def test_a_full_disk_takes_no_records_until_there_is_room(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    with broker.faults.fill_disk() as fault:
        codes = [produce(peer), produce(peer, 1)]

    assert [error_codes.KAFKA_STORAGE_ERROR] * 2 == codes
    assert 2 == fault.hits
    assert error_codes.NONE == produce(peer)
    assert [b"a"] == broker.values("t")


JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=30_000,
    rebalance_timeout_ms=60_000,
    protocol_type="consumer",
    protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
)


def test_a_coordinator_goes_away_and_comes_back(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    member = peer.call(JOIN, 3).member_id
    with raw_peer(broker.bootstrap_servers) as waiting:
        waiting.send(JOIN, 3)  # until the first member has joined again
        broker.wait_for_group("g", "PreparingRebalance")
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)

        with broker.faults.bounce_coordinator("g", error="COORDINATOR_LOAD_IN_PROGRESS"):
            codes = [waiting.receive().error_code, peer.call(beat, 3).error_code]
            of_others = peer.call(OffsetCommitRequest(group_id="h"), 7)

        after = peer.call(beat, 3).error_code
    assert [error_codes.COORDINATOR_LOAD_IN_PROGRESS] * 2 == codes
    assert [] == of_others.topics
    assert error_codes.REBALANCE_IN_PROGRESS == after


async def test_a_coordinator_comes_back_by_itself(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with (
        trionet.open_broker() as broker,
        trionet.testing.open_raw_peer(broker.bootstrap_servers) as peer,
    ):
        control = trionet.testing.control(broker)
        fault = control.faults.bounce_coordinator(seconds=5)
        beat = HeartbeatRequest(group_id="g")
        first = (await peer.call(beat, 3)).error_code
        active = control.faults.active
        await trio.sleep(5)

        second = (await peer.call(beat, 3)).error_code

        assert [error_codes.NOT_COORDINATOR, error_codes.UNKNOWN_MEMBER_ID] == [first, second]
        assert 1 == fault.hits
        assert [fault] == active
        assert fault.is_over
        assert [] == control.faults.active


def test_silent_members_are_expired(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    peer.call(JOIN, 3)
    assert 1 == len(broker.group("g").members)

    broker.expire_members("g")

    assert ("Empty", []) == (broker.group("g").state, broker.group("g").members)
    with pytest.raises(LookupError, match="group h does not exist"):
        broker.expire_members("h")


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
