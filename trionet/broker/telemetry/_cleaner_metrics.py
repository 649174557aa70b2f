"""The metrics of the log cleaner.

Kafka's cleaner has threads, and counts those that have died. Here, an error ends the cleaning of
one log, not what cleans the others. Several nodes of one process share a cleaner, so that each
reports the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...metrics._prometheus import gauge
from ...metrics._registry import Family, Metric, single
from ...metrics._sensors import gauges
from ..model._broker_state import BrokerState

_CLEANER, _MANAGER = "LogCleaner", "LogCleanerManager"

OF_CLEANER: Final[dict[str, Metric]] = {
    field: gauge("log", type, name, help)
    for field, type, name, help in (
        (
            "max_buffer_utilization_percent",
            _CLEANER,
            "max-buffer-utilization-percent",
            "Keys in the map of the last cleanings, as a share of how many fit; the largest.",
        ),
        (
            "recopy_percent",
            _CLEANER,
            "cleaner-recopy-percent",
            "Bytes that the last cleanings have written, as a share of those read.",
        ),
        (
            "max_clean_time_secs",
            _CLEANER,
            "max-clean-time-secs",
            "Duration of the last cleanings; the longest.",
        ),
        (
            "max_compaction_delay_secs",
            _CLEANER,
            "max-compaction-delay-secs",
            "How long logs have had dirty records older than max.compaction.lag.ms; the longest.",
        ),
        (
            "dead_threads",
            _CLEANER,
            "DeadThreadCount",
            "Cleaning tasks that have ended with an error; always 0.",
        ),
        (
            "max_dirty_percent",
            _MANAGER,
            "max-dirty-percent",
            "Dirty ratio of the dirtiest log when the cleaner last looked for one.",
        ),
        (
            "time_since_last_run_ms",
            _MANAGER,
            "time-since-last-run-ms",
            "Time since the cleaner last looked for a log to clean, in milliseconds.",
        ),
    )
}
"""The metrics without labels, by the field of :class:`.CleanerGauges`."""

OF_DIRECTORY: Final[dict[str, Metric]] = {
    "uncleanable_partitions": gauge(
        "log",
        _MANAGER,
        "uncleanable-partitions-count",
        "Partitions that are no longer cleaned, since a cleaning has failed.",
        "logDirectory",
    ),
    "uncleanable_bytes": gauge(
        "log",
        _MANAGER,
        "uncleanable-bytes",
        "Bytes that would be cleaned in these partitions.",
        "logDirectory",
    ),
}
"""The metrics by data directory, by the field of :class:`.CleanerGauges`."""

CLEANER_METRICS: Final = (*OF_CLEANER.values(), *OF_DIRECTORY.values())


def collect_cleaner(state: BrokerState) -> Iterator[Family]:
    """Collect the metrics of the cleaner that the nodes of a process share."""
    found = state.cluster.cleaner.gauges()
    for field, metric in OF_CLEANER.items():
        yield single(metric, getattr(found, field))
    directory = state.folder.directory.path or "memory"
    for field, metric in OF_DIRECTORY.items():
        yield gauges(metric, {(directory,): getattr(found, field)})
