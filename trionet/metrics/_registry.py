"""The registry of collectors, which takes snapshots on request.

Components keep plain numbers and do not depend on metrics. A collector is a function that reads
these numbers. A snapshot calls all collectors without a checkpoint in between, so that its numbers
are consistent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable

from ._families import Family, Kind, Metric, Snapshot, single

logger = logging.getLogger("trionet.metrics")

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
