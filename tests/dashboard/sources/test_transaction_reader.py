"""What the Kafka protocol tells of transactions, and which of them hang."""

from __future__ import annotations

import time

from support.transactional import end, identity, initialize, produce_in
from support.watching import watching
from trionet import open_broker
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import TransactionPartitionRow, TransactionRow
from trionet.dashboard.sources._cluster_source import ClusterSource
from trionet.testing import BrokerControl, RawPeer, control, open_raw_peer


def by_id(model: Model) -> dict[str, TransactionRow]:
    return {row.id: row for row in model.transactions.values()}


async def begin(kit: BrokerControl, peer: RawPeer, id: str, seconds_ago: float = 0.0) -> int:
    """Write a record in a transaction; returns the producer id."""
    producer = identity(await peer.call(*initialize(id)))
    timestamp = round((time.time() - seconds_ago) * 1000)
    await peer.call(*produce_in(id, producer, "t", b"a", timestamp=timestamp))
    return producer[0]


async def test_transactions_are_read_while_they_are_shown() -> None:
    async with open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        kit = control(broker)
        await kit.create_topic("t", 2)
        await begin(kit, peer, "open")
        done = identity(await peer.call(*initialize("done")))
        await peer.call(*produce_in("done", done, "t", b"a", partition=1))
        await peer.call(*end("done", done))
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            assert watched.model.transactions.updated_at is None
            source.focus("transactions")
            model = await watched.until(lambda model: len(model.transactions) == 2)
        rows = by_id(model)

        opened = rows["open"]
        assert ("Ongoing", 0, 60.0, 1, None) == (
            opened.state,
            opened.epoch,
            opened.timeout_seconds,
            opened.coordinator,
            opened.hangs,
        )
        assert opened.age_seconds is not None
        assert opened.partitions is not None
        [partition] = opened.partitions
        assert ("t", 0, 0) == (partition.topic, partition.partition, partition.first_offset)
        ended = rows["done"]
        assert ("CompleteCommit", 1, None, ()) == (
            ended.state,
            ended.epoch,
            ended.age_seconds,
            ended.partitions,
        )


async def test_an_open_transaction_without_an_id_hangs() -> None:
    async with open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        kit = control(broker)
        await kit.create_topic("t", 2)
        producer_id = await begin(kit, peer, "x", seconds_ago=7200)
        del broker._cluster.transactions.transactions["x"]
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("transactions")
            model = await watched.until(lambda model: model.transactions)

        row = model.transactions["", producer_id]
        assert ("no transactional id", "Ongoing") == (row.hangs, row.state)
        assert 7200 <= (row.age_seconds or 0) < 7260
        assert row.partitions is not None
        assert [("t", 0, 0)] == [
            (each.topic, each.partition, each.first_offset) for each in row.partitions
        ]


async def test_a_transaction_that_has_exceeded_its_timeout_by_far_hangs() -> None:
    """Its coordinator should have aborted it (Kafka: LATE_TRANSACTION_BUFFER_MS)."""
    async with open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        kit = control(broker)
        await kit.create_topic("t", 2)
        await begin(kit, peer, "x")
        transaction = broker._cluster.transactions.transactions["x"]
        assert transaction.current is not None
        begun_ms = broker._cluster.now_ms() - 370_000
        transaction.begin(2, begun_ms)
        object.__setattr__(transaction.current, "started_at_ms", begun_ms)
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("transactions")
            model = await watched.until(lambda model: model.transactions)

        assert "exceeds its timeout" == by_id(model)["x"].hangs


async def test_old_records_outside_of_an_ids_transaction_hang() -> None:
    """Its marker was lost there, and the id goes on with other partitions."""
    async with open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        kit = control(broker)
        await kit.create_topic("t", 2)
        await begin(kit, peer, "x", seconds_ago=7200)
        broker._cluster.transactions.transactions["x"].partitions.clear()
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("transactions")
            model = await watched.until(lambda model: model.transactions)
        row = by_id(model)["x"]

        assert "not in t-0" == row.hangs
        assert row.partitions is not None
        assert isinstance(row.partitions[0], TransactionPartitionRow)


async def test_a_list_that_cannot_be_read_says_why() -> None:
    async with open_broker() as broker:
        kit = control(broker)
        kit.faults.fail("ListTransactions", "UNSUPPORTED_VERSION", times=None)
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("transactions")
            model = await watched.until(lambda model: model.transactions.failure)

        assert "UNSUPPORTED_VERSION" in (model.transactions.failure or "")
