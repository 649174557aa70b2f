"""What happens to a whole broker on demand, seen by those who speak to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

import trionet
from support.calls import fetch_request
from support.faulty import METADATA, produce
from trionet.protocol import error_codes
from trionet.protocol.messages.heartbeat import HeartbeatRequest
from trionet.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from trionet.protocol.messages.offset_commit import OffsetCommitRequest
from trionet.testing import BlockingRawPeer, ThreadedBroker, raw_peer


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(topics={"t": 2}) as running:
        yield running


@pytest.fixture
def peer(broker: ThreadedBroker) -> Iterator[BlockingRawPeer]:
    with raw_peer(broker.bootstrap_servers, "me") as connected:
        yield connected


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
