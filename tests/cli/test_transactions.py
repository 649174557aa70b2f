"""``trionet transactions`` against a broker of our own; tests/interop has the same with Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import trionet
from support.calls import TIMESTAMP
from support.command_runs import Done, Run
from support.transactional import Identity, end, identity, initialize, produce_in
from trionet.testing import BlockingRawPeer, ThreadedBroker, raw_peer


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(brokers=2, topics={"t": 2, "u": 1}) as running:
        for topic, number in (("t", 0), ("t", 1), ("u", 0)):
            running.move_leader(topic, number, 1)
        for id in ("x", "y", "idle"):
            running.move_transaction_coordinator(id, 1)
        yield running


@pytest.fixture
def peer(broker: ThreadedBroker) -> Iterator[BlockingRawPeer]:
    with raw_peer(broker.bootstrap_servers.split(",")[0]) as connected:
        yield connected


@pytest.fixture
def transactions(run: Run, broker: ThreadedBroker) -> Run:
    """Run a subcommand."""

    def of_transactions(command: str, *arguments: str) -> Done:
        return run("transactions", command, *arguments, "-b", broker.bootstrap_servers)

    return of_transactions


def begin(peer: BlockingRawPeer, id: str, *, partition: int = 0, timestamp: int = 0) -> Identity:
    producer = identity(peer.call(*initialize(id)))
    when = {"timestamp": timestamp} if timestamp else {}
    peer.call(*produce_in(id, producer, "t", b"a", partition=partition, **when))
    return producer


def test_ids_are_listed_by_state_producer_age_and_pattern(
    transactions: Run, peer: BlockingRawPeer
) -> None:
    producer_id, _ = begin(peer, "x")
    peer.call(*initialize("idle"))
    everything = transactions("list").rows

    def ids(*options: str) -> list[str]:
        return [row["transactional_id"] for row in transactions("list", "--json", *options).json]

    assert [["idle", str(producer_id + 1), "Empty"], ["x", str(producer_id), "Ongoing"]] == (
        everything
    )
    assert ["x"] == ids("--states", "ongoing,PrepareCommit")
    assert ["idle"] == ids("--producer-id", str(producer_id + 1))
    # One that never began is as old as can be (KIP-994).
    assert ["idle"] == ids("--longer-than-ms", "3600000")
    assert ["x"] == ids("--pattern", "x|z")
    wrong = transactions("list", "--states", "Open")
    assert (2, True) == (wrong.status, "unknown state 'Open'; allowed: Empty, Ong" in wrong.err)
    wrong = transactions("list", "--pattern", "x(")
    assert (1, True) == (wrong.status, "does not support the pattern 'x('" in wrong.err)


def test_an_id_that_no_coordinator_has_is_not_created_by_its_abort(
    transactions: Run, peer: BlockingRawPeer
) -> None:
    begin(peer, "x")
    done = transactions("abort", "z", "x", "-y")

    assert ["x"] == [row[0] for row in done.rows]
    assert (1, True) == (done.status, "z: TRANSACTIONAL_ID_NOT_FOUND" in done.err)
    assert [["x", "Empty"]] == [[row[0], row[2]] for row in transactions("list").rows]


def test_an_id_is_described_and_its_transaction_aborted(
    transactions: Run, peer: BlockingRawPeer
) -> None:
    producer = begin(peer, "x")
    [described] = transactions("describe", "x", "--json").json
    missing = transactions("describe", "z")
    unasked = transactions("abort", "x")
    aborted = transactions("abort", "x", "-y")

    assert ("Ongoing", ["t-0"], 60_000) == (
        described["state"],
        described["partitions"],
        described["timeout_ms"],
    )
    assert described["started"] is not None
    assert (1, True) == (missing.status, "TRANSACTIONAL_ID_NOT_FOUND" in missing.err)
    assert 2 == unasked.status
    # One for the abort (KIP-890), and one for the new instance.
    assert [["x", str(producer[0]), str(producer[1] + 2)]] == aborted.rows
    assert ["Empty"] == [row["state"] for row in transactions("list", "--json").json]


def test_a_transaction_without_an_id_hangs_and_can_be_aborted(
    transactions: Run, run: Run, broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    producer_id, epoch = begin(peer, "x", partition=1)
    begin(peer, "y", partition=1)
    none = transactions("find-hanging")
    forget(broker, "x")

    found = transactions("find-hanging", "--json")
    hanging = transactions("find-hanging")

    assert [] == none.rows
    [row] = found.json
    assert ("t", 1, producer_id, epoch, None, 0) == tuple(
        row[name]
        for name in (
            "topic",
            "partition",
            "producer_id",
            "epoch",
            "coordinator_epoch",
            "transaction_start",
        )
    )
    assert row["minutes"] > 15
    assert 1 == len(hanging.rows)
    refused = transactions("abort-hanging", "t:1", "--start-offset", "1", "-y")
    assert (1, True) == (refused.status, "the transaction in t-1 does not hang" in refused.err)
    aborted = transactions("abort-hanging", "t:1", "--start-offset", "0", "-y")
    assert [["t", "1", str(producer_id), str(epoch)]] == aborted.rows
    assert [] == transactions("find-hanging").rows
    address = "-b", broker.bootstrap_servers
    ends = run("topics", "offsets", "t", "-p", "1", "--read-committed", *address)
    assert [["t", "1", "0", "1", "1"]] == ends.rows  # that of `y` is open still


def forget(broker: ThreadedBroker, id: str) -> None:
    """Remove an id from the coordinator, as a database from before the transaction would."""
    coordinator = broker._internals.cluster.transactions
    broker._in_loop(lambda: coordinator.transactions.pop(id))


def test_hanging_transactions_are_searched_for_where_the_options_say(
    transactions: Run, broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    begin(peer, "x")
    forget(broker, "x")

    def found(*options: str) -> int:
        return len(transactions("find-hanging", *options).rows)

    assert 1 == found("--topic", "t", "--partition", "0")
    assert 0 == found("--topic", "t", "--partition", "1")
    assert 0 == found("--topic", "u")
    assert 1 == found("--broker-id", "2")  # has a replica, and need not lead it
    assert 0 == found("--max-transaction-timeout", str(TIMESTAMP // 60_000))
    unknown = transactions("find-hanging", "--topic", "t", "--partition", "7")
    assert (1, True) == (unknown.status, "t-7: UNKNOWN_TOPIC_OR_PARTITION" in unknown.err)
    incomplete = transactions("find-hanging", "--partition", "1")
    assert (2, True) == (incomplete.status, "--partition requires --topic" in incomplete.err)


def test_a_transaction_of_an_id_whose_partition_is_not_in_it_hangs(
    transactions: Run, broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    producer = begin(peer, "x")
    coordinator = broker._internals.cluster.transactions
    broker._in_loop(coordinator.transactions["x"].partitions.clear)
    identity(peer.call(*end("x", producer)))

    assert 1 == len(transactions("find-hanging").rows)
