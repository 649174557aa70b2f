"""What a client reports of itself, by Kafka's names."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

import trionet
from trionet.client._client_metrics import ClientStatistics, MetricsSettings
from trionet.client._topic_partition import TopicPartition
from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import ClientSettings
from trionet.metrics._prometheus import exposition
from trionet.metrics._registry import Family, Kind, Metric, Sample, Snapshot
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest
from trionet.testing import MemoryNetwork

REQUESTS = 10


async def ask(client: NetworkClient, node: Node, times: int) -> None:
    for _ in range(times):
        await client.request(node, DescribeClusterRequest())


@pytest.fixture
async def client(network: MemoryNetwork) -> AsyncIterator[NetworkClient]:
    """A client of a broker, whose windows are ten seconds each; another task polls it."""
    settings = ClientSettings(metrics=MetricsSettings(samples=2, window_seconds=10.0))
    async with (
        trionet.open_broker(network=network) as broker,
        trionet.open_network_client(broker.bootstrap_servers, settings, network=network) as opened,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(opened.run)
        yield opened
        nursery.cancel_scope.cancel()


async def test_requests_and_responses_are_reported_of_the_client_and_of_each_node() -> None:
    """2.4: the counts of the selector, of the whole client and by node."""
    async with (
        trionet.open_broker() as broker,
        trionet.open_network_client(broker.bootstrap_servers) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        [node] = client.metadata.cluster.nodes.values()
        await ask(client, node, REQUESTS)

        actual = client.statistics()
        nursery.cancel_scope.cancel()

    # Beside those, one for the versions and one for the metadata of each connection.
    of_node = actual.nodes[node.id]
    assert of_node["request-total"] >= REQUESTS
    assert of_node["request-total"] == of_node["response-total"]
    assert of_node["incoming-byte-total"] > of_node["outgoing-byte-total"] > 0
    assert 0 < of_node["request-latency-avg"] <= of_node["request-latency-max"]
    assert 0 < of_node["request-size-avg"] <= of_node["request-size-max"]
    for name in ("request-total", "response-total", "outgoing-byte-total", "incoming-byte-total"):
        assert actual[name] == sum(node[name] for node in actual.nodes.values())
    assert actual["connection-creation-total"] == actual["connection-count"] == len(actual.nodes)
    assert actual["connection-close-total"] == 0
    assert actual["io-ratio"] + actual["io-wait-ratio"] == pytest.approx(1.0)
    assert actual["select-total"] > 0


async def test_a_lost_connection_is_counted(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    await client.until_updated()
    before = client.statistics()
    [node] = client.metadata.cluster.nodes.values()
    await ask(client, node, 1)
    client.disconnect(node)
    await ask(client, node, 1)

    actual = client.statistics()

    assert before["connection-close-total"] + 1 == actual["connection-close-total"]
    assert before["connection-count"] == actual["connection-count"]


def test_numbers_are_distinguished_by_node_topic_and_partition() -> None:
    def family(name: str, labels: tuple[str, ...], *samples: Sample) -> Family:
        kafka = f"kafka.consumer:type=some-metrics,{name}"
        return Family(Metric(name.replace("-", "_"), Kind.GAUGE, "", labels, kafka), samples)

    actual = ClientStatistics(
        Snapshot(
            0.0,
            [
                family("a-total", (), Sample((), 1)),
                family("b-total", ("node-id",), Sample(("7",), 2), Sample(("-1",), 3)),
                family("c-total", ("topic",), Sample(("",), 4), Sample(("7",), 5)),
                family(
                    "d-total",
                    ("topic", "partition"),
                    Sample(("", ""), 6),
                    Sample(("t", ""), 7),
                    Sample(("t", "8"), 9),
                ),
            ],
        )
    )

    assert {"a-total": 1, "c-total": 4, "d-total": 6} == dict(actual)
    assert {7: {"b-total": 2}, -1: {"b-total": 3}} == actual.nodes
    assert {"7": {"c-total": 5}, "t": {"d-total": 7}} == actual.topics
    assert {TopicPartition("t", 8): {"d-total": 9}} == actual.partitions


async def test_what_prometheus_reads_is_among_them() -> None:
    async with trionet.open_network_client("localhost:1") as client:
        text = "".join(exposition(client.statistics().snapshot))

    assert "\nkafka_network_client_network_client_metrics_connection_count 0\n" in text


async def test_rates_are_of_the_last_windows(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    await client.until_updated()
    sent = client.statistics()["request-total"]
    rates = []
    for seconds in (10, 10, 10):
        await trio.sleep(seconds)
        rates.append(client.statistics()["request-rate"])

    assert [pytest.approx(sent / 10, rel=0.01), 0, 0] == rates


async def test_what_was_done_before_the_first_read_counts(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    await trio.sleep(5)

    actual = client.statistics()

    assert actual["request-rate"] == actual["request-total"] / 10 > 0
