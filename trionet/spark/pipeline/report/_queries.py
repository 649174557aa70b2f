"""What a report asks of a results directory: the rules, which Spark or Arrow apply.

The rules are data, so that both compute the same from one statement. What is left to each of them
is how to read files, and the few queries that are more than sums.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

import attrs

from ....errors import ConfigError
from .._partials import PHASES
from ._figures import Bins, Traffic
from ._folding import Extent, Row
from ._inputs import Filters

T = TypeVar("T")

#: The maximum number of anomalies; a chart cannot show more.
ANOMALIES_MAX: Final = 1000

#: The column with the bin of the timeline, which no table has.
BIN: Final = "bin"
#: The columns that filters apply to; a table may have only some of them.
SCOPE: Final = ("api_key", "client_id", "listener")
KEYS: Final = ("api_key", "api", "client_id", "listener")
#: What distinguishes clients.
CLIENT: Final = ("client_id", "listener")
COUNTS: Final = (
    "records",
    "requests",
    "errors",
    "throttled",
    "request_bytes",
    "response_bytes",
)
CELLS: Final = ("cells", "counts")
#: The tables that a report reads.
TABLES: Final = (
    *("windows", "requests", "errors", "closes", "quotas", "anomalies", "incidents", "objectives"),
    "intake",
)
ANOMALY_COLUMNS: Final = ("measure", "value", "expected", "score")
#: Of anomalies with the same score, the earliest comes first, and then by these.
ANOMALY_ORDER: Final = ("at", *KEYS, "measure")
INCIDENT_TIMES: Final = ("start", "end", "worst")
INCIDENT_COLUMNS: Final = (
    *("incident", "state", *INCIDENT_TIMES, "measure", "phase", "api", "reason"),
    *("value", "expected", "score", "anomalies", "causes"),
)
INTAKE_COUNTS: Final = ("late", "malformed", "newer", "ahead", "old")


@attrs.frozen(kw_only=True)
class Sums:
    """Sums over the rows of a table, in groups.

    Attributes:
        table: the name of the table.
        scope: the columns of the table that filters apply to.
        by: the columns to group by, of which :data:`BIN` is computed.
        sums: the columns to add up.
        weighted: the means to add up, each times the number of values that it is the mean of; keyed
            by the name of the sum.
        maxima: the columns of which the maximum is returned, keyed by its name.
        counted: a column and the value whose rows are counted, keyed by the name of the count.
        without: rows that have one of these values in each of these columns are left out.
        order: the columns to sort by, nulls first; with ``-`` in front descending, nulls last.
    """

    table: str
    scope: Sequence[str]
    by: Sequence[str]
    sums: Sequence[str]
    weighted: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)
    maxima: Mapping[str, str] = attrs.field(factory=dict)
    counted: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)
    without: Mapping[str, Sequence[object]] = attrs.field(factory=dict)
    order: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """The columns to read beside those of the scope."""
        weights = (name for pair in self.weighted.values() for name in pair)
        counted = (column for column, _ in self.counted.values())
        names = (*self.by, *self.sums, *weights, *self.maxima.values(), *counted, *self.without)
        return [name for name in dict.fromkeys(names) if name != BIN]


TRAFFIC: Final = Sums(
    table="requests",
    scope=SCOPE,
    by=(BIN, "api_key", "api"),
    sums=COUNTS,
    weighted={f"{phase}_us": (f"{phase}_mean_us", "requests") for phase in PHASES},
    maxima={"max_us": "total_max_us"},
)
#: By clients, of which :func:`shares` decides which are the top ones; the order is that of equals.
TALKERS: Final = Sums(
    table="requests",
    scope=SCOPE,
    by=CLIENT,
    sums=COUNTS,
    weighted={"total_us": ("total_mean_us", "requests")},
    maxima={"max_us": "total_max_us"},
    order=CLIENT,
)
#: An error is a response with an error code, or none because the connection has ended.
ERRORS: Final = Sums(
    table="errors",
    scope=SCOPE,
    by=(BIN, "api", "end", "error"),
    sums=("requests",),
    without={"error_code": (0,), "end": ("answered", "unanswered")},
)
CLOSES: Final = Sums(
    table="closes",
    scope=CLIENT,
    by=("listener", "reason"),
    sums=("connections", "requests", "bytes_received", "bytes_sent"),
    weighted={"open_us": ("open_mean_us", "connections")},
)
#: The longest throttled clients first.
QUOTAS: Final = Sums(
    table="quotas",
    scope=CLIENT,
    by=("client_id", "principal", "listener"),
    sums=("requests", "throttled", "throttle_us"),
    maxima={"throttle_max_us": "throttle_max_us"},
    order=("-throttle_us", "client_id", "principal", "listener"),
)
OBJECTIVES: Final = Sums(
    table="objectives",
    scope=("api_key", "client_id"),
    by=("objective", "api_key", "api", "client_id", "target"),
    sums=("requests", "bad"),
    maxima={"burn_1h_max": "burn_1h"},
    counted={"page_minutes": ("alert", "page"), "ticket_minutes": ("alert", "ticket")},
    order=("objective", "client_id"),
)
#: By brokers, the one whose clock has been furthest ahead first; null where none has been.
CLOCKS: Final = Sums(
    table="intake",
    scope=(),
    by=("ahead_node_id",),
    sums=(),
    maxima={"minutes": "ahead_minutes"},
    order=("-minutes", "ahead_node_id"),
)


def shares(whole: Traffic) -> Sequence[tuple[Sequence[str], float]]:
    """Return what clients have a share of; the largest of its shares decides how high one ranks.

    Args:
        whole: the totals of all clients.

    Returns:
        The columns that are added up for each share, and their total.
    """
    return (
        (("requests",), float(whole.requests) or 1.0),
        (("request_bytes", "response_bytes"), float(whole.bytes) or 1.0),
        (("total_us",), whole.phase_us["total"] or 1.0),
    )


_TEXTS: Final = (
    *("api", "client_id", "listener", "principal", "end", "error", "reason", "measure", "phase"),
    *("incident", "state", "objective", "alert"),
)
_REALS: Final = (
    *(f"{phase}_mean_us" for phase in PHASES),
    *("open_mean_us", "value", "expected", "score", "target", "burn_1h"),
)
#: The types of columns in Spark's words, for files of a version that did not have them; others are
#: ``bigint``.
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(_TEXTS, "string"),
    **dict.fromkeys(_REALS, "double"),
    **dict.fromkeys(INCIDENT_TIMES, "timestamp"),
    "cells": "array<int>",
    "counts": "array<bigint>",
}


#: What all versions of the pipeline have written, in each table of which a report reads it.
_ALWAYS: Final = frozenset({"window", "records"})


def missing_columns(
    folder: str, table: str, wanted: Collection[str], found: Collection[str]
) -> Mapping[str, str]:
    """Return the columns that a report reads and that no file of a table has, with their types.

    Another version of the pipeline may have written all of them. Those columns are null.

    Raises:
        ConfigError: the table lacks a column of all versions, so no pipeline has written it.
    """
    missing = sorted(set(wanted) - set(found))
    if not _ALWAYS.isdisjoint(missing):
        raise ConfigError(
            f"--folder {folder}: table {table} was not written by the pipeline; missing columns:"
            f" {', '.join(missing)}"
        )
    return {name: _TYPES.get(name, "bigint") for name in missing}


#: How often a report is begun, at most.
READS_MAX: Final = 5


def repeated(read: Callable[[], T]) -> T:
    """Return what a function reads from a results directory, whose files may be deleted meanwhile.

    A job deletes files at most once an hour, so that a second attempt should succeed.

    Args:
        read: begins with a new listing; raises FileNotFoundError if a file is not there any more.
    """
    for _ in range(READS_MAX - 1):
        with suppress(FileNotFoundError):
            return read()
    return read()


class Queries(Protocol):
    """The queries for one report, which return aggregates."""

    def summed(self, rule: Sums, top: int | None = None) -> Sequence[Row]:
        """Return sums, and only the first ``top`` groups unless that is None."""

    def clients(self) -> int:
        """Return the number of distinct pairs of client id and listener."""

    def cells(self) -> Any:
        """Return the histogram cells by bin and API, as an Arrow table; None without requests."""

    def talkers(self, top: int, whole: Traffic) -> Sequence[Row]:
        """Return the clients with the largest share of requests, bytes or time."""

    def anomalies(self) -> tuple[Sequence[Row], int]:
        """Return the anomalies with the highest scores, and the total number of anomalies."""

    def incidents(self) -> Sequence[Row]:
        """Return the last state of each incident, by its start.

        An incident that is not limited to one API, client or listener passes no such filter.
        """

    def intake(self) -> Row:
        """Return the number of records that are not included in any minute, by cause."""


class Results(Protocol):
    """The results in a directory, limited to a time range."""

    def extent(self) -> Extent | None:
        """Return the extent of the minutes with results; None if there are no results."""

    def queries(self, filters: Filters, bins: Bins) -> Queries:
        """Return the queries for a report."""
