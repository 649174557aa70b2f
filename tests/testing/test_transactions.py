"""Transactions of a broker under test: what they are, how they end, and how to wait for that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

import trionet
from support.transactional import (
    code_of,
    commit_in,
    end,
    identity,
    initialize,
    produce_in,
)
from trionet.protocol import error_codes
from trionet.testing import (
    BlockingRawPeer,
    MemoryNetwork,
    RawPeer,
    ThreadedBroker,
    TransactionView,
    control,
    open_raw_peer,
    raw_peer,
    run_virtual,
)


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(topics={"t": 2}) as running:
        yield running


@pytest.fixture
def peer(broker: ThreadedBroker) -> Iterator[BlockingRawPeer]:
    with raw_peer(broker.bootstrap_servers, "me") as connected:
        yield connected


def begin(peer: BlockingRawPeer, id: str = "x") -> tuple[int, int]:
    """Initialize a producer, and write one record in a transaction."""
    producer = identity(peer.call(*initialize(id)))
    assert 0 == code_of(peer.call(*produce_in(id, producer, "t", b"a")))
    return producer


def test_a_transaction_is_seen_with_its_participants(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    producer = identity(peer.call(*initialize("x", timeout_ms=5_000)))
    new = broker.transactions()
    for partition in (1, 0):
        peer.call(*produce_in("x", producer, "t", b"a", partition=partition))
    peer.call(*commit_in("x", producer, "g", "t", 1))
    ongoing = broker.transactions()
    following = identity(peer.call(*end("x", producer)))

    assert {"x": TransactionView("x", "Empty", *producer, 5_000)} == new
    participants = [("t", 0), ("t", 1)], ["g"]
    assert {"x": TransactionView("x", "Ongoing", *producer, 5_000, *participants)} == ongoing
    ended = TransactionView("x", "CompleteCommit", *following, 5_000)
    assert {"x": ended} == broker.transactions()


def test_expired_transactions_are_aborted_and_their_producers_fenced(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    old = begin(peer)
    peer.call(*initialize("idle"))

    aborted = broker.expire_transactions()

    assert ["x"] == aborted
    assert ["Empty", "CompleteAbort"] == [each.state for each in broker.transactions().values()]
    late = peer.call(*produce_in("x", old, "t", b"b", sequence=1))
    assert error_codes.INVALID_PRODUCER_EPOCH == code_of(late)


def test_only_the_transactions_that_are_named_expire(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    begin(peer, "x")
    begin(peer, "y")

    assert ["y"] == broker.expire_transactions(["y"])
    assert "Ongoing" == broker.transactions()["x"].state
    with pytest.raises(LookupError, match="transactional id z does not exist"):
        broker.expire_transactions(["x", "z"])
    with pytest.raises(TypeError, match="expected a list of transactional ids"):
        broker.expire_transactions("x")
    assert "Ongoing" == broker.transactions()["x"].state


def test_markers_are_held_until_the_fault_is_removed(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    producer = begin(peer)
    with broker.faults.hold_markers("x") as fault:
        following = identity(peer.call(*end("x", producer)))
        decided = broker.transactions()["x"]
        refused = code_of(peer.call(*produce_in("x", following, "t", b"b")))
        other = begin(peer, "y")
        identity(peer.call(*end("y", other)))

    assert ("PrepareCommit", [("t", 0)]) == (decided.state, decided.partitions)
    assert error_codes.CONCURRENT_TRANSACTIONS == refused
    assert 1 == fault.hits
    assert "hold the markers" in str(fault)
    assert "CompleteCommit" == broker.transactions()["x"].state
    assert 0 == code_of(peer.call(*produce_in("x", following, "t", b"b")))


def test_markers_of_all_transactions_are_held(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    producer = begin(peer)
    with broker.faults.hold_markers(), broker.faults.hold_markers("x"):
        identity(peer.call(*end("x", producer, commit=False)))
        broker.delete_topic("t")

        assert "PrepareAbort" == broker.transactions()["x"].state
    assert "CompleteAbort" == broker.transactions()["x"].state


def test_a_transaction_coordinator_is_away(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    producer = begin(peer)

    with broker.faults.bounce_coordinator(transactional_id="x") as fault:
        response = peer.call(*end("x", producer))
        stored = code_of(peer.call(*produce_in("x", producer, "t", b"b", sequence=1)))
        begin(peer, "y")

    assert (error_codes.NOT_COORDINATOR, -1) == (response.error_code, response.producer_id)
    assert 0 == stored  # to the leader of the partition
    assert 1 == fault.hits
    identity(peer.call(*end("x", producer)))
    with pytest.raises(ValueError, match="give one"):
        broker.faults.bounce_coordinator("g", transactional_id="x")


def test_requests_are_found_by_their_transactional_id(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    producer = begin(peer)
    fault = broker.faults.fail("EndTxn", "COORDINATOR_NOT_AVAILABLE", transactional_id="x")
    begin(peer, "y")
    peer.call(*end("x", producer))

    found = [each.api for each in broker.requests(transactional_id="x")]

    assert ["InitProducerId", "Produce", "EndTxn"] == found
    assert 1 == fault.hits
    assert "transactional id x" in broker.log()


def test_a_state_is_waited_for(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    begin(peer)

    assert [("t", 0)] == broker.wait_for_transaction("x", "Ongoing").partitions
    assert TransactionView("y") == broker.wait_for_transaction("y", "Dead")
    with pytest.raises(TimeoutError, match=r"id x in state CompleteCommit; current .*Ongoing"):
        broker.wait_for_transaction("x", "CompleteCommit", seconds=0.01)
    with pytest.raises(ValueError, match=r"unknown state 'Complete'; .*allowed: Empty, Ongoing, "):
        broker.wait_for_transaction("x", "Complete")


def test_transactions_time_out_in_virtual_time() -> None:
    waited = []

    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            kit = control(broker)
            await kit.create_topic("t")
            stream = await network.open_stream(broker.bootstrap_servers)
            peer = RawPeer(stream)
            producer = identity(await peer.call(*initialize("x", timeout_ms=300_000)))
            await peer.call(*produce_in("x", producer, "t", b"a"))
            began = trio.current_time()
            waited.append(await kit.wait_for_transaction("x", "CompleteAbort"))
            # As soon as the coordinator looks, which it does every 10 s.
            assert 300 <= trio.current_time() - began <= 310
            await stream.aclose()

    run_virtual(main)

    assert ["CompleteAbort"] == [each.state for each in waited]


async def test_an_id_that_has_expired_is_dead(autojump_clock: trio.testing.MockClock) -> None:
    network = MemoryNetwork()
    settings = {
        "transactional.id.expiration.ms": 1000,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 1000,
    }
    async with trionet.open_broker(settings, network=network) as broker:
        kit = control(broker)
        async with await network.open_stream(broker.bootstrap_servers) as stream:
            identity(await RawPeer(stream).call(*initialize("x")))
        await kit.wait_for_transaction("x", "Dead")

        assert {} == kit.transactions()


async def test_in_trio_expiry_is_a_checkpoint() -> None:
    async with trionet.open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        kit = control(broker)
        await kit.create_topic("t")
        producer = identity(await peer.call(*initialize("x")))
        await peer.call(*produce_in("x", producer, "t", b"a"))

        with trio.testing.assert_checkpoints():
            assert ["x"] == await kit.expire_transactions(["x"])
        with trio.testing.assert_checkpoints():
            assert [] == await kit.expire_transactions()


async def test_the_fault_may_be_removed_when_the_broker_has_stopped() -> None:
    async with trionet.open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        kit = control(broker)
        await kit.create_topic("t")
        producer = identity(await peer.call(*initialize("x")))
        await peer.call(*produce_in("x", producer, "t", b"a"))
        fault = kit.faults.hold_markers()
        identity(await peer.call(*end("x", producer)))

    fault.remove()

    assert "PrepareCommit" == kit.transactions()["x"].state
