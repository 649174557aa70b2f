"""The metrics of transactions: what is open, what is late, and which markers are missing."""

from __future__ import annotations

import pytest
import trio

from support.transactional import end, identity, initialize, produce_in
from trionet import Broker, open_broker
from trionet.broker.telemetry._transaction_metrics import (
    LATE_TRANSACTIONS,
    MARKERS_TO_RETRY,
    MARKERS_WITHOUT_LEADER,
    PRODUCER_IDS,
    TRANSACTIONAL_IDS,
)
from trionet.metrics._registry import Snapshot
from trionet.testing import MemoryNetwork, RawPeer, control, open_raw_peer


def states(found: Snapshot) -> dict[str, float]:
    """The transactional ids by state, without those of which there are none."""
    samples = found[TRANSACTIONAL_IDS.name].samples
    return {sample.labels[0]: sample.value for sample in samples if sample.value}


def snapshot(broker: Broker) -> Snapshot:
    with broker.watch() as metrics:
        return metrics.snapshot()


async def test_ids_and_producers_are_counted() -> None:
    async with open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        kit = control(broker)
        await kit.create_topic("t", 2)
        none = snapshot(broker)
        await peer.call(*initialize("z"))
        for id in ("x", "y"):
            producer = identity(await peer.call(*initialize(id)))
            await peer.call(*produce_in(id, producer, "t", b"a"))
            await peer.call(*produce_in(id, producer, "t", b"a", partition=1))
            if id == "y":
                identity(await peer.call(*end(id, producer)))
        some = snapshot(broker)

        assert ({}, 0) == (states(none), none[PRODUCER_IDS.name].of())
        assert 6 == len(none[TRANSACTIONAL_IDS.name].samples)
        assert {"Empty": 1, "Ongoing": 1, "CompleteCommit": 1} == states(some)
        assert 4 == some[PRODUCER_IDS.name].of()
        assert 3 == broker.statistics().transactional_ids


async def test_a_transaction_without_data_is_late_after_the_longest_timeout_and_five_minutes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Kafka: ProducerStateManager.hasLateTransaction."""
    settings = {
        "transaction.max.timeout.ms": 60_000,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3_600_000,
    }
    network = MemoryNetwork()
    async with open_broker(settings, network=network) as broker:
        await control(broker).create_topic("t", 2)
        async with await network.open_stream(broker.bootstrap_servers) as stream:
            peer = RawPeer(stream)
            producer = identity(await peer.call(*initialize("x")))
            request, version = produce_in(
                "x", producer, "t", b"a", timestamp=broker._cluster.now_ms()
            )
            await peer.call(request, version)
        counts = []
        for seconds in (359, 2):
            await trio.sleep(seconds)
            counts.append(snapshot(broker)[LATE_TRANSACTIONS.name].of())

    assert [0, 1] == counts


@pytest.mark.parametrize("is_held", [False, True])
async def test_missing_markers_are_counted_by_why_they_are_missing(is_held: bool) -> None:
    settings = {"default.replication.factor": 1}
    async with open_broker(settings, brokers=2) as broker:
        kit = control(broker)
        await kit.create_topic("t", 2)
        await broker.move_transaction_coordinator("x", 1)
        async with (
            open_raw_peer(broker.endpoints_of(1)[0].address) as first,
            open_raw_peer(broker.endpoints_of(2)[0].address) as second,
        ):
            producer = identity(await first.call(*initialize("x")))
            await first.call(*produce_in("x", producer, "t", b"a"))
            await second.call(*produce_in("x", producer, "t", b"a", partition=1))
        if is_held:
            kit.faults.hold_markers("x")
        else:
            await broker.stop(2)
        async with open_raw_peer(broker.endpoints_of(1)[0].address) as first:
            identity(await first.call(*end("x", producer)))
        found = snapshot(broker)

        missing = [found[metric.name].of() for metric in (MARKERS_WITHOUT_LEADER, MARKERS_TO_RETRY)]
        assert missing == ([0, 1] if is_held else [1, 0])
        assert {"PrepareCommit": 1} == states(found)


async def test_each_node_counts_its_own() -> None:
    async with open_broker(brokers=2) as broker:
        await broker.move_transaction_coordinator("x", 2)
        async with open_raw_peer(broker.endpoints_of(2)[0].address) as peer:
            identity(await peer.call(*initialize("x")))

        of_the_first = states(snapshot(broker))
        await broker.move_transaction_coordinator("x", 1)

        assert {} == of_the_first
        assert {"Empty": 1} == states(snapshot(broker))
