"""The usual rule for deriving the Prometheus name of a metric from its name in Kafka.

The rule is from the Kafka configuration that ships with Prometheus's JMX exporter. Strimzi and most
Grafana dashboards follow it, so they work with trionet brokers as they do with Kafka's:

* ``kafka.network:type=RequestMetrics,name=TotalTimeMs`` is
  ``kafka_network_requestmetrics_totaltimems``;
* ``PerSec`` at the end of a meter's name becomes ``_total`` for its count, ``Percent`` becomes
  ``_percent``;
* ``connection-count`` of ``kafka.server:type=socket-server-metrics`` is
  ``kafka_server_socket_server_metrics_connection_count``.
"""

from __future__ import annotations

import re

from ._families import Kind, Metric

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")

# The label of a meter's moving averages: 1m, 5m or 15m.
WINDOW = "window"


def gauge(domain: str, type: str, name: str, help: str, *labels: str) -> Metric:
    """Return the metric for a Yammer gauge, or for a meter of a fraction of time (also a gauge)."""
    return _yammer(Kind.GAUGE, domain, type, name, help, labels)


def summary(domain: str, type: str, name: str, help: str, *labels: str) -> Metric:
    """Return the metric for a Yammer histogram."""
    return _yammer(Kind.SUMMARY, domain, type, name, help, labels)


def meter(domain: str, type: str, name: str, help: str, *labels: str) -> tuple[Metric, Metric]:
    """Return the metrics for a Yammer meter: its count, and moving averages of its rate."""
    kafka = f"kafka.{domain}:type={type},name={name}"
    base = f"kafka_{domain}_{type}_"
    count = _prometheus(f"{base}{name.removesuffix('PerSec')}_total")
    return (
        Metric(count, Kind.COUNTER, help, labels, kafka),
        Metric(
            _prometheus(base + name),
            Kind.GAUGE,
            f"{help} Per second, as a moving average.",
            (*labels, WINDOW),
            kafka,
        ),
    )


def sensor(kind: Kind, group: str, name: str, help: str, *labels: str) -> Metric:
    """Return the server metric for a sensor of Kafka's own metrics library."""
    kafka = f"kafka.server:type={group},{name}"
    return Metric(_prometheus(f"kafka_server_{group}_{name}"), kind, help, labels, kafka)


def client_sensor(
    kind: Kind, client: str, group: str, name: str, help: str, *labels: str
) -> Metric:
    """Return the metric for a Kafka client's sensor."""
    domain = f"kafka.{client.replace('-', '.')}"
    kafka = f"{domain}:type={group},{name}"
    return Metric(_prometheus(f"{domain}_{group}_{name}"), kind, help, labels, kafka)


def _yammer(
    kind: Kind, domain: str, type: str, name: str, help: str, labels: tuple[str, ...]
) -> Metric:
    stem = re.sub("Percent$", "_percent", name)
    return Metric(
        _prometheus(f"kafka_{domain}_{type}_{stem}"),
        kind,
        help,
        labels,
        f"kafka.{domain}:type={type},name={name}",
    )


def _prometheus(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name.lower())
