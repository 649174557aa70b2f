"""docs/metrics.md names every metric, with the labels that it has."""

from __future__ import annotations

import re
from pathlib import Path

from support.kafka_names import SELECTOR_METRICS, SERVER_METRICS
from trionet import open_broker
from trionet.broker.telemetry._broker_metrics import KAFKA_METRICS
from trionet.metrics._registry import Metric

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def rows(title: str) -> list[list[str]]:
    """The cells of the table below a heading, without their code marks."""
    _, heading, rest = PAGE.read_text("utf-8").partition(f"\n### {title}\n")
    assert heading, title
    table = re.findall(r"^\| (`.*) \|$", rest.partition("\n#")[0], re.MULTILINE)
    return [[cell.strip("` ") for cell in row.split(" |")] for row in table]


def expected(metrics: tuple[Metric, ...]) -> list[list[str]]:
    return [[metric.kafka, metric.name, " ".join(metric.labels)] for metric in metrics]


def test_kafkas_metrics_are_named_with_both_names_and_their_labels() -> None:
    assert expected(SERVER_METRICS) == rows("Requests, queues, quotas and memory")
    assert expected(SELECTOR_METRICS) == rows("Connections and processors")
    assert expected(KAFKA_METRICS) == rows("Data")


async def test_the_others_are_all_that_a_broker_reports_beside() -> None:
    settings = {"request.log.topic": "requests"}
    async with open_broker(settings, metrics_listener="http://127.0.0.1:0") as broker:
        assert broker.metrics is not None
        told = broker.metrics.snapshot()

    of_kafka = {metric.name for metric in (*SERVER_METRICS, *SELECTOR_METRICS, *KAFKA_METRICS)}
    others = {
        name: [" ".join(family.metric.labels), family.metric.help]
        for name, family in told.items()
        if name not in of_kafka
    }

    assert others == {name: rest for name, *rest in rows("trionet's own")}
