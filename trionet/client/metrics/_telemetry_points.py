"""Conversion of a client's metrics to OTLP data points with the names of KIP-714.

``connection-creation-total`` of the group ``producer-metrics`` is
``org.apache.kafka.producer.connection.creation.total`` (Kafka: TelemetryMetricNamingConvention).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ...metrics._families import Kind, Metric, Snapshot
from ...metrics._otlp import Point, PointKind

_DOMAIN: Final = "org.apache.kafka"


def telemetry_name(metric: Metric) -> str:
    """Return the KIP-714 name of a metric; empty for a metric that Kafka does not have."""
    _, _, rest = metric.kafka.partition(":type=")
    group, comma, name = rest.partition(",")
    if not comma:
        return ""
    return ".".join((_DOMAIN, group.removesuffix("-metrics"), name)).replace("-", ".")


class TelemetryPoints:
    """Converts snapshots to data points, keeping the previous values to compute deltas.

    Args:
        now_ns: the time at which the client was opened, in nanoseconds since the epoch.
    """

    def __init__(self, now_ns: int) -> None:
        self._opened_ns = self._reported_ns = now_ns
        self._reported: dict[tuple[str, tuple[str, ...]], float] = {}

    def forget(self) -> None:
        """Discard the previous values, so that the next deltas count from the client's opening."""
        self._reported.clear()
        self._reported_ns = self._opened_ns

    def points(
        self, snapshot: Snapshot, prefixes: tuple[str, ...], now_ns: int, *, is_delta: bool
    ) -> Iterator[Point]:
        """Yield the data points of the metrics whose names start with one of the prefixes.

        Args:
            snapshot: a snapshot of the client's metrics.
            prefixes: the name prefixes of the requested metrics.
            now_ns: the time of the snapshot, in nanoseconds since the epoch.
            is_delta: whether to yield the increase of each counter since the preceding call.
        """
        since_ns, self._reported_ns = self._reported_ns, now_ns
        for family in snapshot.values():
            name = telemetry_name(family.metric)
            if not name or not name.startswith(prefixes):
                continue
            is_sum = family.metric.kind is Kind.COUNTER
            keys = [label.replace("-", "_") for label in family.metric.labels]
            for sample in family.samples:
                if not math.isfinite(sample.value) or sample.suffix or sample.quantile:
                    continue
                attributes = {k: v for k, v in zip(keys, sample.labels, strict=True) if v}
                kind, start_ns, value = PointKind.GAUGE, now_ns, sample.value
                if is_sum and is_delta:
                    kind, start_ns = PointKind.DELTA, since_ns
                    value -= self._reported.get((name, sample.labels), 0.0)
                    self._reported[name, sample.labels] = sample.value
                elif is_sum:
                    kind, start_ns = PointKind.CUMULATIVE, self._opened_ns
                yield Point(name, kind, value, start_ns, now_ns, attributes)
