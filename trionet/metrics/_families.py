"""The immutable parts of a snapshot: metrics, families and samples.

A :class:`Metric` is a name with its description. A :class:`Family` contains the values of a metric
at a point in time, as samples with different labels. The kinds are Prometheus's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import attrs

# The quantiles that Kafka's histograms have, by the value of Prometheus's label.
QUANTILES = {"0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999}


class Kind(StrEnum):
    """The kind of a metric.

    A counter only increases. A gauge can take any value. A summary consists of a count, a sum, and
    recent quantiles.
    """

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"


@attrs.frozen
class Metric:
    """The name, kind and description of a metric.

    Attributes:
        name: the metric's name in Prometheus.
        kind: whether the metric is a counter, a gauge or a summary.
        help: a one-sentence description.
        labels: the names of the labels that distinguish the samples, in order.
        kafka: the metric's name in Kafka; empty if Kafka has no such metric.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    kafka: str = ""


Labels = tuple[str, ...]
"""The values of a metric's labels, in the order of the labels."""


class Sample(NamedTuple):
    """One value of a metric.

    Attributes:
        labels: the label values, in the order of the metric's labels.
        value: the value itself.
        suffix: ``"_sum"`` or ``"_count"`` for the sum or the count of a summary; otherwise empty.
        quantile: for a quantile of a summary, its fraction, such as ``"0.99"``; otherwise empty.
    """

    labels: Labels
    value: float
    suffix: str = ""
    quantile: str = ""


class Family(NamedTuple):
    """All samples of one metric."""

    metric: Metric
    samples: tuple[Sample, ...]

    def of(self, *labels: str) -> float:
        """Return the value of the sample with these labels; for a summary, the count.

        Raises:
            KeyError: no sample has these labels.
        """
        suffix = "_count" if self.metric.kind is Kind.SUMMARY else ""
        for sample in self.samples:
            if sample.labels == labels and sample.suffix == suffix:
                return sample.value
        raise KeyError(labels)


class Snapshot(Mapping[str, Family]):
    """All metrics at a point in time: a mapping of names to families, in alphabetical order.

    Args:
        now: the time of the snapshot, in seconds on the loop's clock.
        families: the families, each with a different name.
    """

    def __init__(self, now: float, families: Iterable[Family]) -> None:
        self.now = now
        by_name = {family.metric.name: family for family in families}
        self._families = MappingProxyType(dict(sorted(by_name.items())))

    def __getitem__(self, name: str) -> Family:
        return self._families[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)


def single(metric: Metric, value: float) -> Family:
    """Return the family of a metric without labels, which has a single sample."""
    return Family(metric, (Sample((), value),))
