"""Kafka's names in Prometheus: those that dashboards for Kafka ask for."""

from __future__ import annotations

import re

import pytest

from trionet.metrics._families import Kind
from trionet.metrics._kafka_names import IO_RATIO, IO_WAIT_RATIO, SELECTOR_METRICS, SERVER_METRICS
from trionet.metrics._naming import gauge, meter, sensor, summary

EVERY = [*SERVER_METRICS, *SELECTOR_METRICS]


def test_a_histogram_keeps_its_name() -> None:
    metric = summary("network", "RequestMetrics", "TotalTimeMs", "Time.", "request")

    assert "kafka_network_requestmetrics_totaltimems" == metric.name
    assert "kafka.network:type=RequestMetrics,name=TotalTimeMs" == metric.kafka


def test_a_percentage_is_one_by_name_only() -> None:
    metric = gauge("network", "SocketServer", "NetworkProcessorAvgIdlePercent", "Idle.")

    assert "kafka_network_socketserver_networkprocessoravgidle_percent" == metric.name


def test_a_meter_is_a_count_and_a_rate() -> None:
    count, rate = meter("network", "RequestMetrics", "RequestsPerSec", "Requests.", "request")

    assert ("kafka_network_requestmetrics_requests_total", Kind.COUNTER) == (count.name, count.kind)
    assert ("kafka_network_requestmetrics_requestspersec", Kind.GAUGE) == (rate.name, rate.kind)
    assert (("request",), ("request", "window")) == (count.labels, rate.labels)


def test_a_metric_of_kafkas_own_library_has_its_group() -> None:
    metric = sensor(Kind.GAUGE, "socket-server-metrics", "connection-count", "Open.")

    assert "kafka_server_socket_server_metrics_connection_count" == metric.name
    assert "kafka.server:type=socket-server-metrics,connection-count" == metric.kafka


def test_a_name_is_given_once() -> None:
    names = [metric.name for metric in EVERY]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("metric", EVERY, ids=lambda metric: metric.name)
def test_a_name_is_one_for_prometheus_and_explained(metric: object) -> None:
    [found] = [known for known in EVERY if known is metric]

    assert re.fullmatch(r"kafka_[a-z0-9_]+", found.name)
    assert all(re.fullmatch(r"[a-zA-Z]+", label) for label in found.labels)
    assert re.fullmatch(r"[*A-Z].*\.", found.help)


def test_the_old_names_of_the_io_times_are_marked_as_such() -> None:
    """S35."""
    deprecated = {metric.name for metric in EVERY if metric.help.startswith("*Deprecated*")}

    prefix = "kafka_server_socket_server_metrics_"
    assert {f"{prefix}iotime_total", f"{prefix}io_waittime_total"} == deprecated
    assert {IO_RATIO.name, IO_WAIT_RATIO.name} == {f"{prefix}io_ratio", f"{prefix}io_wait_ratio"}
