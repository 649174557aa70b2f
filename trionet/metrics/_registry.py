"""Everything that can be measured, asked when somebody wants to know.

Components keep plain numbers and know nothing of metrics. A collector is a function that looks at
them; the registry calls all of them when a snapshot is taken, in one go, so that the numbers of a
snapshot belong together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable

from ._families import Family, Kind, Metric, Snapshot, single

logger = logging.getLogger("trionet.metrics")

Collect = Callable[[float], Iterable[Family]]
"""``(now) -> families``; ``now`` is in seconds of the loop's clock and never decreases."""

COLLECTOR_ERRORS = Metric(
    "trionet_metrics_collector_errors_total",
    Kind.COUNTER,
    "Collectors that failed; what they measure is missing.",
)


class Registry:
    """The collectors of one process.

    Take a snapshot every few seconds, also if nobody wants it: rates and quantiles of late are made
    of what changed between snapshots.
    """

    def __init__(self) -> None:
        self._collectors: dict[Collect, None] = {}
        self._errors = 0

    def register(self, collect: Collect) -> None:
        """Ask ``collect`` from now on; asking twice is asking once."""
        self._collectors[collect] = None

    def unregister(self, collect: Collect) -> None:
        """Do not ask it any more; one that is not known is ignored."""
        self._collectors.pop(collect, None)

    def snapshot(self, now: float, without: Collection[Collect] = ()) -> Snapshot:
        """Measure everything, or everything but what some collectors measure.

        Families of the same metric become one. A collector that fails is reported in the log and
        counted, and takes nothing from the others.
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
                logger.exception("a metric cannot be collected")
        _add(found, single(COLLECTOR_ERRORS, self._errors))
        return Snapshot(now, found.values())


def _add(found: dict[str, Family], family: Family) -> None:
    metric = family.metric
    known = found.get(metric.name)
    if known is None:
        found[metric.name] = family
        return
    if known.metric != metric:
        raise ValueError(f"{metric.name} has two meanings: {known.metric!r} and {metric!r}")
    found[metric.name] = Family(metric, known.samples + family.samples)
