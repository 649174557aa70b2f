"""What is shown is what the metrics endpoint says, and what the clients have counted themselves."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families
from trio.testing import wait_all_tasks_blocked

from support.watching import watching
from trionet import open_admin, open_broker, open_consumer, open_producer
from trionet.client.admin import NewTopic
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rates import quantile
from trionet.dashboard.sources._cluster_source import ClusterSource
from trionet.dashboard.sources._http_client import HttpClient
from trionet.dashboard.sources._network_source import InProcessReader, MetricsListenerReader

RECORDS = 300
REQUESTS = "kafka_network_requestmetrics_"
#: A request of these is what is sent, which are answers: the words are Kafka's.
SERVER = "kafka_server_socket_server_metrics_"

Numbers = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


async def exposition(client: HttpClient) -> Numbers:
    """Each sample of ``/metrics`` by its name and labels, read by Prometheus's own parser."""
    _, body = await client.request("GET", "/metrics")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def total(numbers: Numbers, name: str, **labels: str) -> float:
    """The sum of the samples of a name that have these labels."""
    return sum(
        value
        for (each, has), value in numbers.items()
        if each == name and labels.items() <= dict(has).items()
    )


@pytest.mark.parametrize("how", ["in process", "over HTTP"])
async def test_requests_bytes_and_connections_are_what_endpoint_and_clients_count(how: str) -> None:
    async with (
        open_broker(metrics_listener="http://127.0.0.1:0") as broker,
        HttpClient(f"{broker.metrics and broker.metrics.url}") as http,
        open_admin(broker.bootstrap_servers) as admin,
        open_producer(broker.bootstrap_servers) as producer,
    ):
        assert broker.metrics is not None
        near = how == "in process"
        reader = InProcessReader(broker.metrics) if near else MetricsListenerReader(http)
        (await admin.create_topics([NewTopic("t", 3)])).checked()
        refused = await admin.create_topics(["t", "not a name"])
        for number in range(RECORDS):
            await producer.send("t", b"x" * 100, partition=number % 3)
        # A request is counted when its response has left, which its client may know first.
        await wait_all_tasks_blocked()

        model = Model()
        model.update_network(await reader.take(), 1.0)
        rows = await reader.rows("connections")
        model.replace_rows("connections", model.make_rows("connections", rows[0]), rows[1], 1.0)
        numbers = await exposition(http)
        clients = [admin.statistics(), producer.statistics()]

        def counted(name: str) -> float:
            return sum(client[name] for client in clients)

        apis, processors = model.apis.values(), model.processors.values()
        shown = {
            "requests": sum(row.requests for row in apis),
            "requests of processors": sum(row.requests for row in processors),
            "requests of connections": sum(row.requests for row in model.connections.values()),
            "answers": sum(row.responses for row in processors),
            "bytes in": sum(row.bytes_received for row in processors),
            "bytes in of connections": sum(
                row.bytes_received for row in model.connections.values()
            ),
            "bytes out": sum(row.bytes_sent for row in processors),
            "connections": model.figures["connections"],
            "errors": sum(row.errors for row in apis),
            "Produce": model.apis["Produce"].requests,
        }
        requests = counted("request-total")
        assert shown == {
            "requests": requests,
            "requests of processors": requests,
            "requests of connections": requests,
            "answers": counted("response-total"),
            "bytes in": counted("outgoing-byte-total"),
            "bytes in of connections": counted("outgoing-byte-total"),
            "bytes out": counted("incoming-byte-total"),
            "connections": counted("connection-count"),
            "errors": len(refused.errors),
            "Produce": RECORDS,
        }
        errors = total(numbers, f"{REQUESTS}errors_total")
        assert shown == {
            "requests": total(numbers, f"{REQUESTS}requests_total"),
            "requests of processors": total(numbers, f"{SERVER}response_total"),
            "requests of connections": total(numbers, f"{SERVER}response_total"),
            "answers": total(numbers, f"{SERVER}request_total"),
            "bytes in": total(numbers, f"{SERVER}incoming_byte_total"),
            "bytes in of connections": total(numbers, f"{SERVER}incoming_byte_total"),
            "bytes out": total(numbers, f"{SERVER}outgoing_byte_total"),
            "connections": total(numbers, f"{SERVER}connection_count"),
            "errors": errors - total(numbers, f"{REQUESTS}errors_total", error="NONE"),
            "Produce": total(numbers, f"{REQUESTS}requests_total", request="Produce"),
        }


async def test_times_are_those_of_the_endpoint() -> None:
    """Sums of each phase, and the median of a total time that nothing else has changed."""
    async with (
        open_broker(metrics_listener="http://127.0.0.1:0") as broker,
        HttpClient(f"{broker.metrics and broker.metrics.url}") as http,
        open_admin(broker.bootstrap_servers) as admin,
    ):
        for _ in range(50):
            await admin.describe_cluster()
        page = await MetricsListenerReader(http).take()
        numbers = await exposition(http)
        [told] = [api for api in page.about["apis"] if api["name"] == "DescribeCluster"]

        assert 50 == told["requests"] == sum(count for _, count in told["total_ms"])
        for phase, spent_ms in told["phases_ms"].items():
            name = f"{REQUESTS}{phase.lower()}_sum"
            assert pytest.approx(total(numbers, name, request="DescribeCluster")) == spent_ms
        median = f"{REQUESTS}totaltimems"
        labels = {"request": "DescribeCluster", "quantile": "0.50"}
        told_median = quantile(sorted(map(tuple, told["total_ms"])), 0.5)
        assert pytest.approx(total(numbers, median, **labels)) == told_median


async def test_records_groups_and_lag_are_what_clients_count() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        servers = broker.bootstrap_servers
        await admin.create_topics([NewTopic("t", 3)])
        async with open_producer(servers) as producer:
            for number in range(RECORDS):
                await producer.send("t", b"x", partition=number % 3)
            sent = producer.statistics()["record-send-total"]
        source = ClusterSource(servers)
        async with (
            open_consumer(
                servers,
                group_id="g",
                topics="t",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                max_poll_records=7,
            ) as consumer,
            watching(source) as watched,
        ):
            read = 0
            while read < RECORDS // 2:
                read += len(await consumer.next_batch())
            await consumer.commit()
            committed = await consumer.committed(consumer.assignment)
            behind = sum(RECORDS // 3 - each.offset for each in committed.values() if each)
            source.focus("topics")
            model = await watched.until(lambda model: model.topics["t"].records == RECORDS)
            source.focus("groups")
            model = await watched.until(
                lambda model: "g" in model.groups and model.groups["g"].lag is not None
            )

        assert (RECORDS, RECORDS) == (sent, model.topics["t"].records)
        assert behind == model.groups["g"].lag
        assert 0 < behind < RECORDS
