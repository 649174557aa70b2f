"""What `/metrics` and `/snapshot` say."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.openmetrics import openmetrics_families
from trionet.metrics._registry import Family, Kind, Metric, Registry, Sample, single
from trionet.server.metrics._http_exchange import HttpRequest, Refused
from trionet.server.metrics._metrics_pages import OPEN_PATHS, MetricsPages
from trionet.server.metrics._snapshot_sections import Row, SectionPage

QUEUE = Metric("queue_size", Kind.GAUGE, "What waits.", kafka="kafka.x:type=Queue,name=Size")
TIME = Metric("time_ms", Kind.SUMMARY, "Time.", ("request", "version"))
COUNT = 250


def numbers(count_max: int, before: int | None) -> SectionPage:
    """A section of 250 rows."""
    end = COUNT if before is None else min(before, COUNT)
    rows: list[Row] = [{"number": n, "name": f"n{n}"} for n in reversed(range(end))]
    return SectionPage(COUNT, rows[:count_max])


@pytest.fixture
def pages() -> MetricsPages:
    return pages_of()


def pages_of(*, is_ready: bool = True, excluded: Sequence[str] = ()) -> MetricsPages:
    registry = Registry()
    samples = (
        Sample(("Fetch", ""), math.nan, quantile="0.99"),
        Sample(("Fetch", ""), 2.5, "_sum"),
        Sample(("Fetch", ""), 3, "_count"),
    )
    registry.register(lambda now: [single(QUEUE, 7), Family(TIME, samples)])
    return MetricsPages(
        lambda: registry.snapshot(12.5),
        lambda: {"node_id": 1, "queues": {"requests": 7}},
        {"numbers": numbers},
        {"/double": lambda parameters: 2 * int(parameters["of"])},
        is_ready=lambda: is_ready,
        excluded=excluded,
    )


def text(pages: MetricsPages, path: str, **parameters: str) -> str:
    return "".join(pages.find(HttpRequest(path, parameters)).parts)


def snapshot(pages: MetricsPages, path: str = "/snapshot", **parameters: str) -> Any:
    return json.loads(text(pages, path, **parameters))


def test_metrics_are_in_prometheuss_words(pages: MetricsPages) -> None:
    found = {family.name for family in text_string_to_metric_families(text(pages, "/metrics"))}

    assert {"queue_size", "time_ms", "trionet_metrics_collector_errors"} == found


def test_openmetrics_is_served_if_the_client_prefers_it(pages: MetricsPages) -> None:
    page = pages.find(HttpRequest("/metrics", {}, takes_openmetrics=True))

    assert "application/openmetrics-text; version=1.0.0; charset=utf-8" == page.content_type
    found = {family.name for family in openmetrics_families("".join(page.parts))}
    assert {"queue_size", "time_ms", "trionet_metrics_collector_errors"} == found


@pytest.mark.parametrize(
    ("excluded", "left"),
    [
        (["time_ms"], {"queue_size", "trionet_metrics_collector_errors"}),
        (["*_ms", "trionet_*"], {"queue_size"}),
        (["time"], {"queue_size", "time_ms", "trionet_metrics_collector_errors"}),
        (["*"], set()),
    ],
)
def test_metrics_can_be_left_out(excluded: list[str], left: set[str]) -> None:
    pages = pages_of(excluded=excluded)

    found = {family.name for family in text_string_to_metric_families(text(pages, "/metrics"))}

    assert left == found
    assert {"queue_size", "time_ms"} < snapshot(pages)["metrics"].keys()


def test_health_is_that_there_is_a_response_and_readiness_that_connections_are_accepted() -> None:
    ready, stopping = pages_of(is_ready=True), pages_of(is_ready=False)

    assert {"/health", "/ready"} == OPEN_PATHS
    assert ["ok\n"] * 3 == [
        text(ready, "/health"),
        text(ready, "/ready"),
        text(stopping, "/health"),
    ]
    with pytest.raises(Refused) as refused:
        text(stopping, "/ready")
    assert HTTPStatus.SERVICE_UNAVAILABLE == refused.value.response.status


def test_the_types_of_the_pages(pages: MetricsPages) -> None:
    types = {
        path: pages.find(HttpRequest(path, {})).content_type
        for path in ("/", "/metrics", "/snapshot", "/snapshot/numbers")
    }

    assert {
        "/": "text/plain; charset=utf-8",
        "/metrics": "text/plain; version=0.0.4; charset=utf-8",
        "/snapshot": "application/json",
        "/snapshot/numbers": "application/json",
    } == types


def test_a_snapshot_has_everything(pages: MetricsPages) -> None:
    found = snapshot(pages)

    assert (1, 12.5, 1, {"requests": 7}) == (
        found["version"],
        found["now"],
        found["node_id"],
        found["queues"],
    )
    assert {
        "kind": "gauge",
        "help": "What waits.",
        "kafka": "kafka.x:type=Queue,name=Size",
        "samples": [{"labels": {}, "value": 7}],
    } == found["metrics"]["queue_size"]
    assert [
        {"labels": {"request": "Fetch", "quantile": "0.99"}, "value": None},
        {"labels": {"request": "Fetch"}, "value": 2.5, "of": "sum"},
        {"labels": {"request": "Fetch"}, "value": 3, "of": "count"},
    ] == found["metrics"]["time_ms"]["samples"]


def test_a_snapshot_has_the_first_page_of_each_list(pages: MetricsPages) -> None:
    found = snapshot(pages)["numbers"]

    assert (COUNT, 100, 150) == (found["total"], len(found["rows"]), found["next"])
    assert {"number": 249, "name": "n249"} == found["rows"][0]


def test_all_pages_together_are_the_list(pages: MetricsPages) -> None:
    rows: list[Any] = []
    parameters: dict[str, str] = {}
    while True:
        page = snapshot(pages, "/snapshot/numbers", limit="60", **parameters)
        assert (1, COUNT) == (page["version"], page["total"])
        rows += page["rows"]
        if page["next"] is None:
            break
        parameters = {"before": str(page["next"])}

    assert [*range(COUNT - 1, -1, -1)] == [row["number"] for row in rows]


def test_the_index_names_the_pages(pages: MetricsPages) -> None:
    assert "/metrics" in text(pages, "/")
    assert "/snapshot" in text(pages, "/")


@pytest.mark.parametrize(
    ("path", "parameters", "status"),
    [
        ("/metric", {}, HTTPStatus.NOT_FOUND),
        ("/metrics/", {}, HTTPStatus.NOT_FOUND),
        ("/snapshot/other", {}, HTTPStatus.NOT_FOUND),
        ("numbers", {}, HTTPStatus.NOT_FOUND),
        ("/snapshot", {"limit": "0"}, HTTPStatus.BAD_REQUEST),
        ("/snapshot", {"limit": "501"}, HTTPStatus.BAD_REQUEST),
        ("/snapshot/numbers", {"limit": "ten"}, HTTPStatus.BAD_REQUEST),
        ("/snapshot/numbers", {"limit": "²"}, HTTPStatus.BAD_REQUEST),
        ("/snapshot/numbers", {"before": "-1"}, HTTPStatus.BAD_REQUEST),
        ("/snapshot/numbers", {"before": "1" * 5000}, HTTPStatus.BAD_REQUEST),
        ("/snapshot/numbers", {"before": ""}, HTTPStatus.BAD_REQUEST),
    ],
)
def test_what_is_not_there_or_not_allowed_is_refused(
    pages: MetricsPages, path: str, parameters: dict[str, str], status: HTTPStatus
) -> None:
    with pytest.raises(Refused) as refused:
        pages.find(HttpRequest(path, parameters))

    assert status == refused.value.response.status


def test_what_is_to_be_done_is_done_and_reported(pages: MetricsPages) -> None:
    done = pages.find(HttpRequest("/double", {"of": "21"}, is_order=True))

    assert {"version": 1, "done": 42} == json.loads("".join(done.parts))


@pytest.mark.parametrize(("path", "is_order"), [("/double", False), ("/snapshot", True)])
def test_pages_are_read_and_the_rest_is_done(
    pages: MetricsPages, path: str, is_order: bool
) -> None:
    with pytest.raises(Refused) as refused:
        pages.find(HttpRequest(path, {"of": "1"}, is_order=is_order))

    assert HTTPStatus.NOT_FOUND == refused.value.response.status
