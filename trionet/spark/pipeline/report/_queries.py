"""What a report asks of a results directory, which Spark or Arrow computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from ._figures import Bins, Traffic
from ._folding import Extent, Row
from ._inputs import Filters

#: The maximum number of anomalies; a chart cannot show more.
ANOMALIES_MAX: Final = 1000

KEYS: Final = ("api_key", "api", "client_id", "listener")
COUNTS: Final = (
    "records",
    "requests",
    "errors",
    "throttled",
    "request_bytes",
    "response_bytes",
)
#: What an incident may be limited to.
SCOPE: Final = ("api_key", "client_id", "listener")
INCIDENT_TIMES: Final = ("start", "end", "worst")
INCIDENT_COLUMNS: Final = (
    *("incident", "state", *INCIDENT_TIMES, "measure", "phase", "api", "reason"),
    *("value", "expected", "score", "anomalies"),
)
OBJECTIVE_COLUMNS: Final = ("requests", "bad", "burn_1h", "alert")


class Queries(Protocol):
    """The queries for one report, which return aggregates."""

    def traffic(self) -> Sequence[Row]:
        """Return sums by bin and API."""

    def clients(self) -> int:
        """Return the number of distinct pairs of client id and listener."""

    def cells(self) -> Any:
        """Return the histogram cells by bin and API, as an Arrow table; None without requests."""

    def talkers(self, top: int, whole: Traffic) -> Sequence[Row]:
        """Return the clients with the largest share of requests, bytes or time."""

    def errors(self) -> Sequence[Row]:
        """Return sums by bin, API and error."""

    def closes(self) -> Sequence[Row]:
        """Return sums by listener and reason."""

    def quotas(self, top: int) -> Sequence[Row]:
        """Return sums of the longest throttled clients."""

    def anomalies(self) -> tuple[Sequence[Row], int]:
        """Return the anomalies with the highest scores, and the total number of anomalies."""

    def incidents(self) -> Sequence[Row]:
        """Return the last state of each incident, by its start."""

    def objectives(self) -> Sequence[Row]:
        """Return sums by objective and client."""

    def intake(self) -> Row:
        """Return the number of records that are not included in any minute, by cause."""


class Results(Protocol):
    """The results in a directory, limited to a time range."""

    def extent(self) -> Extent | None:
        """Return the extent of the minutes with results; None if there are no results."""

    def queries(self, filters: Filters, bins: Bins) -> Queries:
        """Return the queries for a report."""
