"""The results of a report's queries; building the report from them does not need Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs

from ._bins import Bins

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

Row = Mapping[str, Any]


@attrs.frozen
class Extent:
    """The time range that has results, and its number of minutes with results."""

    start: datetime
    end: datetime
    windows: int


@attrs.frozen(kw_only=True)
class QueryResults:
    """The results of all queries for a report.

    Attributes:
        extent: the extent of the minutes with results.
        bins: the bins of the timeline.
        traffic: sums by bin and API.
        clients: the number of distinct pairs of client id and listener.
        cells: histogram cells as an Arrow table: ``bin``, ``api_key``, ``cell``, ``requests``.
        talkers: sums of the clients with the largest share of requests, bytes or time.
        errors: sums by bin, API and error.
        closes: sums by listener and reason.
        quotas: sums of the longest throttled clients.
        anomalies: the anomalies with the highest scores.
        anomaly_count: the total number of anomalies.
        intake: the number of records that are not included in any minute, by cause.
    """

    extent: Extent
    bins: Bins
    traffic: Sequence[Row]
    clients: int
    cells: Any
    talkers: Sequence[Row]
    errors: Sequence[Row]
    closes: Sequence[Row]
    quotas: Sequence[Row]
    anomalies: Sequence[Row]
    anomaly_count: int
    intake: Row
