"""Prometheus's own parser of OpenMetrics, with types."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families


def openmetrics_families(text: str) -> list[Metric]:
    """The families of a text; ValueError if it is not OpenMetrics, down to its end."""
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
