"""Signals: for each minute, the figures that :mod:`._anomalies` judges, at several levels.

A fault may be visible only in a sum (a storm of new clients, each with few requests) or only in a
part (one client that stops). So requests are added up over the whole broker, each listener, each
API, and each client, besides the single series. Closed connections are counted by reason, with and
without their clients, and clients by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...protocol.records.columnar._arrow_columns import number_column
from ._fold import LONG_POLLS
from ._partials import CLOSES, REQUESTS, SUMS, TIMES, Groups, Numbers, counted, matrix, unfolded
from .histogram import BUCKETS_MAX, percentiles

# Levels: what the requests, or connections, of a signal have in common.
BROKER: Final = 0
LISTENER: Final = 1
API: Final = 2
CLIENT: Final = 3
SERIES: Final = 4
#: Closed connections of a listener, by reason; ``requests`` counts the connections.
CLOSED: Final = 5
#: The distinct client ids of the broker; ``requests`` counts the ids.
CLIENTS: Final = 6
#: The requests of an objective, which is the reason; ``failed`` counts the bad ones. They are
#: counted by :mod:`._objectives`, and no anomalies are looked for.
OBJECTIVE: Final = 7
#: Closed connections of a client and listener, by reason.
CLOSED_OF_CLIENT: Final = 8

#: The columns that identify a signal of each level. The others are ``ALL_APIS``, or null.
SCOPES: Final[Mapping[int, Sequence[str]]] = {
    BROKER: (),
    LISTENER: ("listener",),
    API: ("api_key", "listener"),
    CLIENT: ("client_id", "listener"),
    SERIES: ("api_key", "client_id", "listener"),
    CLOSED: ("listener", "reason"),
    CLIENTS: (),
    CLOSED_OF_CLIENT: ("client_id", "listener", "reason"),
}
#: The levels with few signals, whose hours and days are remembered.
WIDE: Final = (BROKER, LISTENER, API, CLOSED, CLIENTS)
ALL_APIS: Final = -1

#: The phases that add up to the broker's time. Throttling comes after the response (KIP-219).
PHASES: Final = ("request_queue", "local", "remote", "response_queue", "response_send")
KEYS: Final = ("level", "api_key", "client_id", "listener", "reason")
_COUNTS: Final = ("records", "requests", "failed", "throttled")
_SUMS: Final = (*_COUNTS, *(f"{phase}_us" for phase in PHASES))
#: The figures of a signal.
FIGURES: Final = (*_SUMS, "p50_us", "p97_us", "p99_us")
_PER_MILLE: Final = (500, 970, 990)

_KINDS: Final = {"level": "int", "api_key": "int"}
#: The columns of signals, for Spark.
COLUMNS: Final = ", ".join(
    ["window bigint"]
    + [f"{name} {_KINDS.get(name, 'string')}" for name in KEYS]
    + [f"{name} bigint" for name in FIGURES]
)


def signals(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the signals of the minutes of one task.

    Args:
        batches: Arrow batches with the columns of :mod:`._estimates`, with all rows of each minute.
    """
    filled = [each for each in batches if each.num_rows]
    if not filled:
        return
    [whole] = pa.Table.from_batches(filled).combine_chunks().to_batches()
    kinds = whole["kind"].to_numpy()
    requests = whole.filter(pa.array(kinds == REQUESTS))
    if requests.num_rows:
        yield from _of_requests(requests)
        yield _of_clients(requests)
    closes = whole.filter(pa.array(kinds == CLOSES))
    if closes.num_rows:
        place = SUMS[CLOSES].index("connections")
        connections = matrix(closes["sums"], len(SUMS[CLOSES]))[:, place : place + 1]
        for level in (CLOSED, CLOSED_OF_CLIENT):
            columns = (closes[name] for name in SCOPES[level])
            groups = Groups.by([closes["window"].to_numpy(), *columns])
            count = groups.sums(connections)[:, 0]
            yield _rows(level, closes, groups.first, {"records": count, "requests": count})


def _of_requests(batch: Any) -> Iterator[Any]:
    sums = _sums(batch)
    of_row, cells, counts = unfolded(batch)
    is_broker = cells // BUCKETS_MAX == TIMES.index("broker")
    of_row, buckets, counts = of_row[is_broker], cells[is_broker] % BUCKETS_MAX, counts[is_broker]
    columns = {name: batch[name] for name in ("client_id", "listener")}
    columns["api_key"] = batch["api_key"].to_numpy()
    window = batch["window"].to_numpy()
    for level in (BROKER, LISTENER, API, CLIENT, SERIES):
        groups = Groups.by([window, *(columns[name] for name in SCOPES[level])])
        found, times = counted(groups.of_row[of_row] * BUCKETS_MAX + buckets, counts)
        bounds = np.searchsorted(found, np.arange(len(groups) + 1) * BUCKETS_MAX)
        figures = dict(zip(_SUMS, groups.sums(sums).T, strict=True))
        for per_mille in _PER_MILLE:
            name = f"p{per_mille // 10}_us"
            figures[name] = percentiles(found % BUCKETS_MAX, times, bounds, per_mille)
        yield _rows(level, batch, groups.first, figures)


def _sums(batch: Any) -> Numbers:
    """Return the columns ``_SUMS``, with the time of long polls left out."""
    read = matrix(batch["sums"], len(SUMS[REQUESTS]))
    sums = read[:, [SUMS[REQUESTS].index(name) for name in _SUMS]].copy()
    is_poll = np.isin(batch["api_key"].to_numpy(), LONG_POLLS)
    sums[is_poll, _SUMS.index("remote_us")] = 0
    return sums


def _of_clients(batch: Any) -> Any:
    clients = Groups.by([batch["window"].to_numpy(), batch["client_id"]]).first
    groups = Groups.by([batch["window"].to_numpy()[clients]])
    count = groups.sums(np.ones((len(clients), 1), np.int64))[:, 0]
    return _rows(CLIENTS, batch, clients[groups.first], {"records": count, "requests": count})


def _rows(level: int, batch: Any, first: Numbers, figures: Mapping[str, Numbers]) -> Any:
    """Build signals whose window and scope are those of the rows at ``first``."""
    at = number_column(pa.int64(), first)
    length = len(first)
    columns = [batch["window"].take(at), pa.repeat(pa.scalar(level, pa.int32()), length)]
    for name in KEYS[1:]:
        if name in SCOPES[level]:
            columns.append(batch[name].take(at))
        elif name == "api_key":
            columns.append(pa.repeat(pa.scalar(ALL_APIS, pa.int32()), length))
        else:
            columns.append(pa.nulls(length, pa.string()))
    zeros = np.zeros(length, np.int64)
    columns += [
        number_column(pa.int64(), np.ascontiguousarray(figures.get(name, zeros)))
        for name in FIGURES
    ]
    return pa.RecordBatch.from_arrays(columns, names=["window", *KEYS, *FIGURES])
