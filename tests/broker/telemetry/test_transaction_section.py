"""The transactions in a broker's snapshot: what it coordinates, and what hangs there."""

from __future__ import annotations

from collections.abc import Mapping

from support.transactional import commit_in, end, identity, initialize, produce_in
from trionet import Broker, open_broker
from trionet.testing import control, open_raw_peer


def rows(broker: Broker) -> dict[object, Mapping[str, object]]:
    with broker.watch() as metrics:
        page = metrics.sections["transactions"](100, None)
    assert page.total == len(page.rows)
    return {row["id"]: row for row in page.rows}


async def test_a_transaction_is_reported_with_its_age_and_partitions() -> None:
    async with open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        await control(broker).create_topic("t", 2)
        producer = identity(await peer.call(*initialize("x")))
        new = rows(broker)["x"]
        await peer.call(*produce_in("x", producer, "t", b"a", partition=1))
        await peer.call(*commit_in("x", producer, "g", "t", 1))
        ongoing = rows(broker)["x"]
        await peer.call(*end("x", producer))
        ended = rows(broker)["x"]

        expected = {"id": "x", "producer_id": producer[0], "timeout_seconds": 60.0, "hangs": None}
        assert expected.items() <= new.items()
        assert ("Empty", None, []) == (new["state"], new["age_seconds"], new["partitions"])
        assert ("Ongoing", 0, 1) == (ongoing["state"], ongoing["epoch"], ongoing["coordinator"])
        assert isinstance(ongoing["age_seconds"], float)
        assert isinstance(ongoing["partitions"], list)
        assert ["__consumer_offsets", "t"] == [topic for topic, _ in ongoing["partitions"]]
        assert ("CompleteCommit", 1, None) == (ended["state"], ended["epoch"], ended["age_seconds"])


async def test_a_transaction_that_hangs_says_why() -> None:
    async with open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        await control(broker).create_topic("t", 2)
        producer = {}
        for id in ("x", "late"):
            producer[id] = identity(await peer.call(*initialize(id, timeout_ms=1_000)))
            await peer.call(*produce_in(id, producer[id], "t", b"a"))
        transactions = broker._cluster.transactions.transactions
        del transactions["x"]
        current = transactions["late"].current
        assert current is not None
        object.__setattr__(current, "started_at_ms", current.started_at_ms - 302_000)
        found = rows(broker)

        unknown = found[""]
        assert (producer["x"][0], "no transactional id", [["t", 0]]) == (
            unknown["producer_id"],
            unknown["hangs"],
            unknown["partitions"],
        )
        assert "exceeds its timeout" == found["late"]["hangs"]


async def test_each_node_reports_what_it_coordinates() -> None:
    async with open_broker(brokers=2) as broker:
        for id, node in (("x", 1), ("y", 2)):
            await broker.move_transaction_coordinator(id, node)
            async with open_raw_peer(broker.endpoints_of(node)[0].address) as peer:
                identity(await peer.call(*initialize(id)))

        assert {"x"} == set(rows(broker))
