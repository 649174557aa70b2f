"""docs/reference/client-metrics.md names every metric of the clients, and what it means."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import trionet
from trionet.client._client_metrics import ClientStatistics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "client-metrics.md"

Told = Mapping[str, Mapping[str, str]]


def section(title: str) -> dict[str, str]:
    """What the table below a heading says of each name."""
    _, heading, rest = PAGE.read_text("utf-8").partition(f"\n## {title}\n")
    assert heading, title
    rows = re.findall(r"^\| `(.*)` \| (.*) \|$", rest.partition("\n## ")[0], re.MULTILINE)
    return dict(rows)


def told(statistics: ClientStatistics) -> Told:
    """What each metric means, by its group and its name."""
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for family in statistics.snapshot.values():
        if family.metric.kafka:
            group, name = family.metric.kafka.partition("type=")[2].split(",")
            groups[group][name] = family.metric.help
    return groups


async def test_every_metric_is_named_with_its_meaning() -> None:
    async with trionet.open_broker() as broker:
        servers = broker.bootstrap_servers
        async with (
            trionet.open_admin(servers) as admin,
            trionet.open_producer(servers) as producer,
            trionet.open_consumer(servers, group_id="g") as consumer,
        ):
            of_admin = told(admin.statistics())
            of_producer = told(producer.statistics())
            of_consumer = told(consumer.statistics())

    common = of_admin["admin-client-metrics"]
    nodes = of_admin["admin-client-node-metrics"]
    own = [group for group in of_consumer if group != "consumer-node-metrics"]

    assert common == section("Every client")
    assert nodes == section("Each node")
    assert nodes == of_producer["producer-node-metrics"] == of_consumer["consumer-node-metrics"]
    assert of_producer["producer-metrics"] == {**common, **section("Producers")}
    assert of_producer["producer-topic-metrics"] == section("Topics of a producer")
    assert {name: help for group in own for name, help in of_consumer[group].items()} == {
        **common,
        **section("Consumers"),
    }
