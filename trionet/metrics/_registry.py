"""Metrics, and the registry of collectors, which takes snapshots of them on request.

A :class:`Metric` is a name with its description. A :class:`Family` contains the values of a metric
at a point in time, as samples with different labels. The kinds are Prometheus's.

Components keep plain numbers and do not depend on metrics. A collector is a function that reads
these numbers. A snapshot calls all collectors without a checkpoint in between, so that its numbers
are consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import attrs

from .._util._logging import get_logger

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


logger = get_logger("trionet.metrics")

Collect = Callable[[float], Iterable[Family]]
"""``(now) -> families``; ``now`` is in seconds on the loop's clock and never decreases."""

COLLECTOR_ERRORS = Metric(
    "trionet_metrics_collector_errors_total",
    Kind.COUNTER,
    "Collector failures; each leaves metrics missing from a snapshot.",
)


class Registry:
    """The collectors of one process.

    Take a snapshot every few seconds even if no client requests one: recent rates and quantiles are
    computed from the changes between snapshots.
    """

    def __init__(self) -> None:
        self._collectors: dict[Collect, None] = {}
        self._errors = 0

    def register(self, collect: Collect) -> None:
        """Add a collector; a no-op if the collector was already added."""
        self._collectors[collect] = None

    def unregister(self, collect: Collect) -> None:
        """Remove a collector; a no-op for an unknown collector."""
        self._collectors.pop(collect, None)

    def snapshot(self, now: float, without: Collection[Collect] = ()) -> Snapshot:
        """Call all collectors except those in ``without``, and return their families.

        Families of the same metric are merged. The failure of a collector is logged and counted,
        and does not affect other collectors.
        """
        found: dict[str, Family] = {}
        for collect in list(self._collectors):
            if collect in without:
                continue
            try:
                for family in collect(now):
                    _add(found, family)
            except Exception:  # boundary: one collector
                self._errors += 1
                logger.exception(
                    "a metrics collector failed; the snapshot lacks some or all of its metrics"
                )
        _add(found, single(COLLECTOR_ERRORS, self._errors))
        return Snapshot(now, found.values())


def _add(found: dict[str, Family], family: Family) -> None:
    metric = family.metric
    known = found.get(metric.name)
    if known is None:
        found[metric.name] = family
        return
    if known.metric != metric:
        raise ValueError(
            f"metric {metric.name} is defined twice, as {known.metric!r} and as {metric!r};"
            " each name must have a single definition"
        )
    found[metric.name] = Family(metric, known.samples + family.samples)
