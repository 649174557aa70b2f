"""Transactions of the Java client and Kafka's tools for them: our broker, and Apache Kafka.

All of it holds in both versions of the transaction protocol, and Kafka shows that the tests are
right about it. In version 2 (KIP-890) each end of a transaction raises the producer's epoch.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator

import attrs
import pytest

from support.cache import Unavailable
from support.clients.java_transactions import JavaError, JavaTransactions, java_transactions
from support.kafka_node import kafka_node
from support.kafka_tools import FEATURES, TRANSACTIONS, kafka_tool
from support.transactional import identity, initialize, produce_in
from trionet.testing import broker as trionet_broker
from trionet.testing import raw_peer

# Timeouts of transactions are looked for as often as this.
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}
BROKERS = ("trionet", "kafka")


@attrs.frozen
class Cluster:
    """A running broker with a level of ``transaction.version``, and the Java client."""

    bootstrap: str
    level: int
    java: JavaTransactions

    def transactions(self, *arguments: str) -> list[list[str]]:
        """The words of each line that ``kafka-transactions.sh`` prints, without its title."""
        said = kafka_tool(TRANSACTIONS, "--bootstrap-server", self.bootstrap, *arguments)
        _title, *lines = said.decode().splitlines()
        return [line.split() for line in lines]


def features(bootstrap: str, *arguments: str) -> str:
    """What ``kafka-features.sh`` prints."""
    return kafka_tool(FEATURES, "--bootstrap-server", bootstrap, *arguments).decode()


@contextlib.contextmanager
def running(name: str) -> Iterator[str]:
    """The bootstrap server of a new broker; the test is skipped where there is no Java."""
    with contextlib.ExitStack() as stack:
        try:
            if name == "kafka":
                yield stack.enter_context(kafka_node(SETTINGS))[0]
            else:
                yield stack.enter_context(trionet_broker(SETTINGS)).bootstrap_servers
        except Unavailable as reason:
            pytest.skip(str(reason))


@pytest.fixture(
    scope="module",
    params=itertools.product(BROKERS, (2, 1)),
    ids=lambda param: f"{param[0]}-TV{param[1]}",
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    name, level = request.param
    with running(name) as bootstrap:
        if level < 2:
            features(bootstrap, "downgrade", "--feature", f"transaction.version={level}")
        with java_transactions(bootstrap) as java:
            yield Cluster(bootstrap, level, java)


@pytest.fixture
def java(cluster: Cluster) -> JavaTransactions:
    return cluster.java


_numbers = itertools.count(1)


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names of topics, groups, producers and consumers that nothing else has."""
    return lambda: f"name-{next(_numbers)}"


@pytest.fixture
def topic(java: JavaTransactions, new_name: Callable[[], str]) -> str:
    name = new_name()
    java.create_topic(name)
    return name


@pytest.fixture
def producer(java: JavaTransactions, new_name: Callable[[], str]) -> Iterator[str]:
    """An open producer; its transactional id is its name."""
    name = new_name()
    java.open(name, name)
    yield name
    java.close(name)


def test_records_of_committed_transactions_are_read(
    java: JavaTransactions, producer: str, topic: str
) -> None:
    for value in ("a", "b"):
        java.begin(producer)
        java.send(producer, topic, value)
        java.commit(producer)

    assert ["a", "b"] == java.read(topic)


def test_records_of_aborted_transactions_are_not(
    java: JavaTransactions, producer: str, topic: str
) -> None:
    java.begin(producer)
    java.send(producer, topic, "a")
    java.abort(producer)
    java.begin(producer)
    java.send(producer, topic, "b")
    java.commit(producer)

    assert ["b"] == java.read(topic)
    assert ["a", "b"] == java.read(topic, is_committed=False)


def test_an_open_transaction_holds_back_what_comes_after_it(
    java: JavaTransactions, producer: str, topic: str, new_name: Callable[[], str]
) -> None:
    other = new_name()
    java.open(other, other)
    java.begin(producer)
    java.send(producer, topic, "open")
    java.begin(other)
    java.send(other, topic, "committed")
    java.commit(other)
    java.close(other)

    assert [] == java.read(topic)
    assert ["open", "committed"] == java.read(topic, is_committed=False)

    java.commit(producer)

    assert ["open", "committed"] == java.read(topic)


def test_version_2_raises_the_epoch_with_each_transaction(
    cluster: Cluster, producer: str, topic: str
) -> None:
    java = cluster.java
    before = java.describe(producer)
    for end in (java.commit, java.abort, java.commit):
        java.begin(producer)
        java.send(producer, topic, "a")
        end(producer)
    after = java.describe(producer)

    assert ("Empty", 0) == (before.state, before.producer_epoch)
    raised = 3 if cluster.level == 2 else 0
    assert (before.producer_id, raised) == (after.producer_id, after.producer_epoch)


def test_offsets_are_committed_with_the_transaction(
    java: JavaTransactions, producer: str, topic: str, new_name: Callable[[], str]
) -> None:
    target, group, consumer = new_name(), new_name(), new_name()
    java.create_topic(target)
    java.begin(producer)
    for value in "abc":
        java.send(producer, topic, value)
    java.commit(producer)
    java.subscribe(consumer, group, topic)
    taken = java.poll(consumer, 3)

    java.begin(producer)
    java.send(producer, target, "".join(taken))
    java.send_offsets(producer, consumer)
    java.abort(producer)
    aborted = java.committed(group, topic)
    java.begin(producer)
    java.send(producer, target, "".join(taken))
    java.send_offsets(producer, consumer)
    java.commit(producer)
    java.leave(consumer)

    assert ["a", "b", "c"] == taken
    assert aborted is None
    assert 4 == java.committed(group, topic)  # the marker has an offset, too
    assert ["abc"] == java.read(target)


def test_a_member_that_has_left_cannot_commit_offsets(
    java: JavaTransactions, producer: str, topic: str, new_name: Callable[[], str]
) -> None:
    group, consumer = new_name(), new_name()
    java.begin(producer)
    java.send(producer, topic, "a")
    java.commit(producer)
    java.subscribe(consumer, group, topic)
    java.poll(consumer, 1)
    java.leave(consumer)
    java.begin(producer)

    with pytest.raises(JavaError) as caught:
        java.send_offsets(producer, consumer)
    java.abort(producer)  # the error is abortable: the producer goes on

    assert "CommitFailedException" == caught.value.name
    assert java.committed(group, topic) is None
    java.begin(producer)
    java.send(producer, topic, "b")
    java.commit(producer)
    assert ["a", "b"] == java.read(topic)


def test_a_second_instance_fences_the_first_and_aborts_its_transaction(
    java: JavaTransactions, topic: str, new_name: Callable[[], str]
) -> None:
    first, second = new_name(), new_name()
    java.open(first, first)
    java.begin(first)
    java.send(first, topic, "of the first")
    java.open(second, first)
    java.begin(second)
    java.send(second, topic, "of the second")
    java.commit(second)

    with pytest.raises(JavaError) as caught:
        java.commit(first)

    assert "ProducerFencedException" == caught.value.name
    assert ["of the second"] == java.read(topic)
    java.close(first)
    java.close(second)


def test_a_transaction_that_takes_too_long_is_aborted(
    cluster: Cluster, topic: str, new_name: Callable[[], str]
) -> None:
    java, name, again = cluster.java, new_name(), new_name()
    java.open(name, name, timeout_ms=300)
    java.begin(name)
    java.send(name, topic, "late")
    while "CompleteAbort" != java.describe(name).state:
        pass

    with pytest.raises(JavaError) as caught:
        java.commit(name)
    java.close(name)

    # In version 2 the broker takes it for the repetition of an earlier request.
    refused = "InvalidTxnStateException" if cluster.level == 2 else "ProducerFencedException"
    assert refused == caught.value.name
    java.open(again, name)
    java.begin(again)
    java.send(again, topic, "in time")
    java.commit(again)
    java.close(again)
    assert ["in time"] == java.read(topic)


def test_kafka_transactions_lists_and_describes(
    cluster: Cluster, producer: str, topic: str
) -> None:
    java = cluster.java
    java.begin(producer)
    offset = java.send(producer, topic, "a")
    described = java.describe(producer)
    of_partition = ("--topic", topic, "--partition", "0")

    listed = cluster.transactions("list")
    [transaction] = cluster.transactions("describe", "--transactional-id", producer)
    [writer] = cluster.transactions("describe-producers", *of_partition)
    hanging = cluster.transactions("find-hanging", "--broker-id", "1")
    java.commit(producer)
    [ended] = cluster.transactions("describe", "--transactional-id", producer)

    producer_id = str(described.producer_id)
    assert ["Ongoing"] == [line[3] for line in listed if line[0] == producer]
    # Columns: coordinator, id, producer id, epoch, state, timeout, start, duration, partitions.
    assert [producer, producer_id, str(described.producer_epoch), "Ongoing", "60000"] == (
        transaction[1:6]
    )
    assert f"{topic}-0" == transaction[-1]
    # Columns: producer id, epoch, coordinator's epoch, last sequence, last timestamp, start offset.
    assert [producer_id, str(described.producer_epoch)] == writer[:2]
    assert ["0", str(offset)] == [writer[3], writer[5]]
    assert [] == hanging
    assert "CompleteCommit" == ended[4]


def test_kafka_transactions_aborts_what_hangs_in_a_partition(
    cluster: Cluster, producer: str, topic: str
) -> None:
    java = cluster.java
    java.begin(producer)
    offset = java.send(producer, topic, "a")
    of_partition = ("--topic", topic, "--partition", "0")

    kafka_tool(
        *(TRANSACTIONS, "--bootstrap-server", cluster.bootstrap),
        *("abort", *of_partition, "--start-offset", str(offset)),
    )
    [writer] = cluster.transactions("describe-producers", *of_partition)

    assert "None" == writer[5]
    assert [] == java.read(topic)
    java.abort(producer)


def test_kafka_transactions_finds_what_hangs() -> None:
    """A transaction whose id the coordinator has forgotten; Kafka has no way to make it do so."""
    with trionet_broker(SETTINGS, topics={"t": 2}) as broker:
        with raw_peer(broker.bootstrap_servers) as peer:
            hanging, open_one = (identity(peer.call(*initialize(id))) for id in "xy")
            peer.call(*produce_in("x", hanging, "t", b"a", partition=1))
            peer.call(*produce_in("y", open_one, "t", b"b", partition=1))
        coordinator = broker._internals.cluster.transactions
        broker._in_loop(lambda: coordinator.transactions.pop("x"))
        find = ("--bootstrap-server", broker.bootstrap_servers, "find-hanging", "--broker-id", "1")
        try:
            said = kafka_tool(TRANSACTIONS, *find)
        except Unavailable as reason:
            pytest.skip(str(reason))

        # Columns: topic, partition, producer id, epoch, coordinator epoch, start, time, minutes.
        [found] = [line.split() for line in said.decode().splitlines()[1:]]
        assert ["t", "1", str(hanging[0]), str(hanging[1])] == found[:4]
        kafka_tool(
            *(TRANSACTIONS, "--bootstrap-server", broker.bootstrap_servers, "abort"),
            *("--topic", "t", "--partition", "1", "--start-offset", "0"),
        )
        assert [] == kafka_tool(TRANSACTIONS, *find).decode().splitlines()[1:]


def test_kafka_transactions_terminates_a_transaction_by_its_id(
    cluster: Cluster, topic: str, new_name: Callable[[], str]
) -> None:
    java, name = cluster.java, new_name()
    java.open(name, name)
    java.begin(name)
    java.send(name, topic, "a")

    kafka_tool(
        *(TRANSACTIONS, "--bootstrap-server", cluster.bootstrap),
        *("forceTerminateTransaction", "--transactionalId", name),
    )

    with pytest.raises(JavaError) as caught:
        java.commit(name)
    java.close(name)
    assert "ProducerFencedException" == caught.value.name
    assert [] == java.read(topic)


@pytest.mark.parametrize("name", BROKERS)
def test_kafka_features_describes_and_changes_the_level(name: str) -> None:
    def level(bootstrap: str) -> tuple[int, int, int]:
        """The lowest and highest supported level, and the finalized one."""
        [line] = re.findall(
            r"^Feature: transaction.version.*", features(bootstrap, "describe"), re.MULTILINE
        )
        low, high, finalized = re.findall(
            r"(?:SupportedM..Version|FinalizedVersionLevel): (\d+)", line
        )
        return int(low), int(high), int(finalized)

    of = ("--feature", "transaction.version=1")
    with running(name) as bootstrap:
        at_first = level(bootstrap)
        features(bootstrap, "downgrade", *of, "--dry-run")
        after_dry_run = level(bootstrap)
        with pytest.raises(RuntimeError, match=r"INVALID_UPDATE_VERSION|Could not upgrade"):
            features(bootstrap, "upgrade", *of)
        features(bootstrap, "downgrade", *of)
        lower = level(bootstrap)
        features(bootstrap, "upgrade", "--feature", "transaction.version=2")
        raised = level(bootstrap)
        with pytest.raises(RuntimeError, match=r"transaction\.version"):
            features(bootstrap, "upgrade", "--feature", "transaction.version=3")

    assert [(0, 2, 2), (0, 2, 2), (0, 2, 1), (0, 2, 2)] == [
        at_first,
        after_dry_run,
        lower,
        raised,
    ]
