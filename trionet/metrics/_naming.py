"""From Kafka's name of a metric to Prometheus's, by the rule that everybody uses.

It is the rule of the configuration that Prometheus's JMX exporter brings for Kafka, and that
Strimzi and most Grafana dashboards follow; so those show a trionet broker as they show Kafka:

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
    """A Yammer gauge, or a meter of a share of the time, which is one to whoever reads it."""
    return _yammer(Kind.GAUGE, domain, type, name, help, labels)


def summary(domain: str, type: str, name: str, help: str, *labels: str) -> Metric:
    """A Yammer histogram."""
    return _yammer(Kind.SUMMARY, domain, type, name, help, labels)


def meter(domain: str, type: str, name: str, help: str, *labels: str) -> tuple[Metric, Metric]:
    """A Yammer meter of events: its count, and its moving averages in events a second."""
    kafka = f"kafka.{domain}:type={type},name={name}"
    base = f"kafka_{domain}_{type}_"
    count = _prometheus(f"{base}{name.removesuffix('PerSec')}_total")
    return (
        Metric(count, Kind.COUNTER, help, labels, kafka),
        Metric(
            _prometheus(base + name),
            Kind.GAUGE,
            f"{help} A second, as a moving average.",
            (*labels, WINDOW),
            kafka,
        ),
    )


def sensor(kind: Kind, group: str, name: str, help: str, *labels: str) -> Metric:
    """A metric of Kafka's own library."""
    kafka = f"kafka.server:type={group},{name}"
    return Metric(_prometheus(f"kafka_server_{group}_{name}"), kind, help, labels, kafka)


def client_sensor(
    kind: Kind, client: str, group: str, name: str, help: str, *labels: str
) -> Metric:
    """A metric of one of Kafka's clients."""
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
