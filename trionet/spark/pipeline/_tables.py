"""Defines the result tables: columns computed from estimated rows, and keys in the topic.

All expressions are Spark SQL, so the executors evaluate them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from ._estimates import PER_MILLE
from ._objectives import WINDOWS as BURN_TIMES
from ._partials import CLOSES, ERRORS, MAXIMA, REQUESTS, SUMS, TALKERS, TIMES

#: The number of talkers per minute and measure.
TALKERS_MAX: Final = 10
#: The measures by which talkers are ranked, and their columns.
TALK: Final[Mapping[str, str]] = {"requests": "requests", "bytes": "bytes", "time": "time_us"}

_SECONDS: Final = 60


@attrs.frozen
class Table:
    """A result table.

    Attributes:
        name: the name of the table and its directory, and the kind in the keys in the topic.
        dimensions: the columns that identify a row within its window.
        columns: the SQL expression for each column, keyed by name; the window precedes them.
        unpublished: the columns that are not written to the topic.
        times: the columns that are written to the topic as the window is.
    """

    name: str
    dimensions: Sequence[str]
    columns: Mapping[str, str]
    unpublished: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """The SQL expression that builds the key in the topic from the table's columns."""
        return f"to_json(struct('{self.name}' as kind, {_text('window')}{self._dimensions}))"

    @property
    def value(self) -> str:
        """The SQL expression that builds the value in the topic from the table's columns."""
        columns = [name for name in self.columns if name not in self.unpublished]
        shown = [_text(name) if name in self.times else f"`{name}`" for name in columns]
        return f"to_json(struct({', '.join([_text('window'), *shown])}))"

    @property
    def _dimensions(self) -> str:
        return "".join(f", `{name}`" for name in self.dimensions)


def _text(time: str) -> str:
    return f"date_format({time}, \"yyyy-MM-dd'T'HH:mm:ss'Z'\") as {time}"


def _sum(kind: int, name: str) -> str:
    # `get` returns null for rows of other kinds with fewer sums; sums[i] would raise an error.
    return f"get(sums, {SUMS[kind].index(name)})"


def _sums(kind: int, *names: str) -> dict[str, str]:
    return {name: _sum(kind, name) for name in names}


def _maximum(kind: int, name: str) -> str:
    return f"get(maxima, {MAXIMA[kind].index(name)})"


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _times() -> dict[str, str]:
    columns = {}
    requests = _sum(REQUESTS, "requests")
    for number, time in enumerate(TIMES):
        for place, per_mille in enumerate(PER_MILLE):
            digits = f"{per_mille:03}".rstrip("0").ljust(2, "0")
            columns[f"{time}_p{digits}_us"] = f"get(percentiles, {number * len(PER_MILLE) + place})"
        columns[f"{time}_max_us"] = _maximum(REQUESTS, f"{time}_us")
        columns[f"{time}_mean_us"] = f"{_sum(REQUESTS, f'{time}_us')} / {requests}"
    return columns


def _per_second(name: str) -> str:
    return f"{_sum(REQUESTS, name)} / {_SECONDS}"


REQUESTS_TABLE: Final = Table(
    "requests",
    ("api", "client_id", "listener"),
    {
        **_same("api_key", "api", "client_id", "listener"),
        **_sums(REQUESTS, "records", "requests"),
        "requests_per_s": _per_second("requests"),
        **_sums(REQUESTS, "request_bytes", "response_bytes"),
        "request_bytes_per_s": _per_second("request_bytes"),
        "response_bytes_per_s": _per_second("response_bytes"),
        **_sums(REQUESTS, "errors", "failed", "throttled"),
        **_times(),
        **_same("cells", "counts"),
    },
    frozenset({"cells", "counts"}),
)
ERRORS_TABLE: Final = Table(
    "errors",
    ("api", "client_id", "listener", "end", "error_code"),
    {
        **_same("api_key", "api", "client_id", "listener", "end", "error_code", "error"),
        **_sums(ERRORS, "records", "requests"),
    },
)
CLOSES_TABLE: Final = Table(
    "closes",
    ("listener", "client_id", "reason"),
    {
        **_same("listener", "client_id", "reason"),
        **_sums(CLOSES, "connections", "requests", "bytes_received", "bytes_sent"),
        "open_mean_us": f"{_sum(CLOSES, 'open_us')} / {_sum(CLOSES, 'connections')}",
        "open_max_us": _maximum(CLOSES, "open_us"),
    },
)
QUOTAS_TABLE: Final = Table(
    "quotas",
    ("client_id", "principal", "listener"),
    {
        **_same("client_id", "principal", "listener"),
        **_sums(TALKERS, "records", "requests", "throttled"),
        "throttled_share": f"{_sum(TALKERS, 'throttled')} / {_sum(TALKERS, 'requests')}",
        **_sums(TALKERS, "throttle_us"),
        "throttle_max_us": _maximum(TALKERS, "throttle_us"),
    },
)
#: The rows are ranked, see :func:`ranked`.
TALKERS_TABLE: Final = Table(
    "talkers",
    ("measure", "rank"),
    _same(
        *("measure", "rank", "client_id", "principal", "listener", "records", "requests"),
        *("bytes", "time_us", "share"),
    ),
)
#: The rows come from :mod:`._anomalies`. A dimension is null if an anomaly is not limited to one.
ANOMALIES_TABLE: Final = Table(
    "anomalies",
    ("api", "client_id", "listener", "reason", "measure"),
    _same(
        *("api_key", "api", "client_id", "listener", "reason", "measure", "phase", "value"),
        *("expected", "spread", "score", "minutes", "incident"),
    ),
)
#: Rows of :mod:`.incidents._incidents`, one for each minute that changes an incident.
INCIDENTS_TABLE: Final = Table(
    "incidents",
    ("incident",),
    {
        **_same("incident", "state"),
        **{name: f"timestamp_seconds({name} * 60)" for name in ("start", "end", "worst")},
        **_same("measure", "phase", "api_key", "api", "client_id", "listener", "reason"),
        **_same("value", "expected", "score", "anomalies", "causes"),
    },
    times=frozenset({"start", "end", "worst"}),
)
#: The rows come from :mod:`._objectives`.
OBJECTIVES_TABLE: Final = Table(
    "objectives",
    ("objective", "client_id"),
    _same(
        *("objective", "api_key", "api", "client_id", "target", "requests", "bad"),
        *(f"burn_{time}" for time in BURN_TIMES),
        "alert",
    ),
)
#: The rows are totals over the other tables.
WINDOWS_TABLE: Final = Table(
    "windows",
    (),
    _same(
        *("records", "requests", "connections", "request_bytes", "response_bytes", "errors"),
        *("throttled", "clients", "series"),
    ),
)

#: The columns of talkers before they are ranked.
TALKER_COLUMNS: Final[Mapping[str, str]] = {
    **_same("window", "client_id", "principal", "listener"),
    **_sums(TALKERS, "records", "requests", "bytes", "time_us"),
}


def ranked(measure: str) -> tuple[str, str, str]:
    """Return the SQL expressions for the share, the rank and the measure of talkers."""
    column = TALK[measure]
    # Decimals cannot overflow here; a sum of doubles would depend on the order.
    of_window = f"sum(cast({column} as decimal(20, 0))) over (partition by window)"
    # Ties are broken by name, so that repeated computations give the same ranks.
    order = f"{column} desc, client_id, principal, listener"
    return (
        f"coalesce(cast({column} as double) / nullif({of_window}, 0), 0) as share",
        f"cast(row_number() over (partition by window order by {order}) as int) as rank",
        f"'{measure}' as measure",
    )


#: SQL conditions for the kinds of rows from which the totals are computed.
_IS: Final = {kind: f"kind = {kind}" for kind in (REQUESTS, CLOSES)}


def _total(kind: int, name: str) -> str:
    return f"coalesce(try_sum({_sum(kind, name)}) filter (where {_IS[kind]}), 0)"


WINDOW_TOTALS: Final[Mapping[str, str]] = {
    **{
        name: _total(REQUESTS, name)
        for name in ("records", "requests", "request_bytes", "response_bytes", "errors")
    },
    "throttled": _total(REQUESTS, "throttled"),
    "connections": _total(CLOSES, "connections"),
    "clients": f"count(distinct client_id) filter (where {_IS[REQUESTS]})",
    "series": f"count(*) filter (where {_IS[REQUESTS]})",
}

#: The counts of records read; not in the topic, since a row has no single window.
INTAKE_TABLE: Final = Table(
    "intake",
    (),
    {
        "watermark": "timestamp_micros(watermark_us)",
        **_same(
            *("records", "requests_read", "connections_read", "late", "malformed", "newer"),
            *("ahead", "old", "open_records"),
        ),
        # The broker whose clock has been furthest ahead; null and 0 if none has been.
        "ahead_node_id": "nullif(ahead_node_id, -1)",
        "ahead_minutes": "ahead_minutes",
    },
)

#: All result tables.
TABLES: Final = (
    REQUESTS_TABLE,
    ERRORS_TABLE,
    CLOSES_TABLE,
    TALKERS_TABLE,
    QUOTAS_TABLE,
    ANOMALIES_TABLE,
    INCIDENTS_TABLE,
    OBJECTIVES_TABLE,
    WINDOWS_TABLE,
    INTAKE_TABLE,
)
