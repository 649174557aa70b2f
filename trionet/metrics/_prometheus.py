"""The names of Kafka's metrics in Prometheus, and its text format, the response of ``/metrics``.

The rule for names is from the Kafka configuration that ships with Prometheus's JMX exporter.
Strimzi and most Grafana dashboards follow it, so they work with trionet brokers as they do with
Kafka's:

* ``kafka.network:type=RequestMetrics,name=TotalTimeMs`` is
  ``kafka_network_requestmetrics_totaltimems``;
* ``PerSec`` at the end of a meter's name becomes ``_total`` for its count, ``Percent`` becomes
  ``_percent``;
* ``connection-count`` of ``kafka.server:type=socket-server-metrics`` is
  ``kafka_server_socket_server_metrics_connection_count``.

In the text (version 0.0.4) each family has ``# HELP``, ``# TYPE``, and one line per sample. Labels
are in the metric's order, with the quantile last. Empty labels are omitted: to Prometheus, they
equal missing labels.

OpenMetrics (version 1.0) is the same with three differences: the name of a counter's family lacks
the ``_total`` of its samples, quotation marks in help are escaped, and the text has an end. A
counter whose name has no ``_total``, as Kafka's names of some do not, is of unknown type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from ._registry import Family, Kind, Metric, Sample

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


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

# Below this a float represents every whole number exactly.
_WHOLE_MAX = 2**53

_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABELS = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def exposition(snapshot: Mapping[str, Family], *, is_openmetrics: bool = False) -> Iterator[str]:
    """Yield the text of a snapshot, one family at a time, omitting families without samples.

    Formatting a snapshot with many labels takes milliseconds, so the caller can let other tasks run
    between families.

    Args:
        snapshot: the families by name.
        is_openmetrics: whether to write OpenMetrics instead of Prometheus's text format.
    """
    heading = _openmetrics_heading if is_openmetrics else _heading
    for family in snapshot.values():
        if family.samples:
            yield heading(family.metric) + "".join(_lines(family))
    if is_openmetrics:
        yield "# EOF\n"


def _heading(metric: Metric) -> str:
    text = metric.help.translate(_IN_HELP)
    return f"# HELP {metric.name} {text}\n# TYPE {metric.name} {metric.kind}\n"


def _openmetrics_heading(metric: Metric) -> str:
    name, kind = metric.name, str(metric.kind)
    if metric.kind is Kind.COUNTER:
        name = metric.name.removesuffix("_total")
        kind = "unknown" if name == metric.name else kind
    return f"# HELP {name} {metric.help.translate(_IN_LABELS)}\n# TYPE {name} {kind}\n"


def _lines(family: Family) -> Iterator[str]:
    metric = family.metric
    for sample in family.samples:
        labels = _labels(metric.labels, sample)
        yield f"{metric.name}{sample.suffix}{labels} {number(sample.value)}\n"


def _labels(names: tuple[str, ...], sample: Sample) -> str:
    pairs = [
        f'{name}="{value.translate(_IN_LABELS)}"'
        for name, value in zip(names, sample.labels, strict=True)
        if value
    ]
    if sample.quantile:
        pairs.append(f'quantile="{sample.quantile}"')
    return f"{{{','.join(pairs)}}}" if pairs else ""


def number(value: float) -> str:
    """Format a number so that Prometheus, with Go's ParseFloat, reads it back exactly."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if abs(value) < _WHOLE_MAX and value == int(value):
        return str(int(value))
    return repr(float(value))
