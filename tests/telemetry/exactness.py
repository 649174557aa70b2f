"""What the log's records say, and whether the pipeline's results are that.

The records are read from the files of the broker's log, without the pipeline. Counts must be exact,
percentiles close.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trionet.protocol import api_keys
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_values
from trionet.protocol.request_log_columns import decode_columns

PHASES = (
    "request_queue",
    "local",
    "remote",
    "throttle",
    "response_queue",
    "response_send",
    "total",
)
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_DIMENSIONS = ("api_key", "client_id", "listener")
_COLUMNS = (
    "completed_at",
    *_DIMENSIONS,
    "request_bytes",
    "response_bytes",
    *(f"{phase}_us" for phase in PHASES),
)
# So many values are decoded at once.
_BATCHES = 200

Key = tuple[datetime, str, str, str]
"""A row of the results: its window, API, client id and listener."""


@attrs.frozen
class Exact:
    """What is exactly so of one row of the results.

    Attributes:
        records: how many there are.
        request_bytes: of all requests.
        response_bytes: of all responses.
        percentiles: by column of the results, the nearest rank.
    """

    records: int
    request_bytes: int
    response_bytes: int
    percentiles: Mapping[str, int]


def exact_rows(folder: Path, topic: str, before: datetime) -> Iterator[tuple[Key, Exact]]:
    """All rows that the table ``requests`` must have of the windows that begin before a time.

    Args:
        folder: the data directory of a broker that has ended.
        topic: of its request log.
        before: only whole windows are looked at.
    """
    table = pa.concat_tables(_logged(folder, topic))
    table = table.filter(
        pc.less(table["completed_at"], pa.scalar(before, pa.timestamp("us", "UTC")))
    )
    table = table.set_column(0, "window", pc.floor_temporal(table["completed_at"], unit="minute"))
    keys = ["window", *_DIMENSIONS]
    order = pc.sort_indices(table, sort_keys=[(key, "ascending") for key in keys])
    table = table.take(order).combine_chunks()
    numbers = {name: table[name].to_numpy() for name in table.column_names if name not in keys}
    for rows in _runs([table[key] for key in keys]):
        window, api_key, client_id, listener = (table[key][rows.start].as_py() for key in keys)
        yield (
            (window.astimezone(UTC), api_keys.name_of(api_key), client_id, listener),
            _exact({name: column[rows] for name, column in numbers.items()}),
        )


def _runs(columns: list[Any]) -> Iterator[slice]:
    """From where to where sorted rows have the same values in these columns."""
    count = len(columns[0])
    is_new = np.zeros(max(0, count - 1), bool)
    for column in columns:
        is_new |= pc.not_equal(column[1:], column[:-1]).to_numpy()
    edges = [0, *(np.flatnonzero(is_new) + 1).tolist(), count] if count else []
    for start, end in pairwise(edges):
        yield slice(start, end)


def _exact(columns: Mapping[str, np.ndarray]) -> Exact:
    percentiles = {}
    count = len(columns["request_bytes"])
    for phase in PHASES:
        ordered = np.sort(columns[f"{phase}_us"])
        for name, share in SHARES.items():
            rank = max(1, int(np.ceil(share * count - 1e-9)))
            percentiles[f"{phase}_{name}_us"] = int(ordered[rank - 1])
        percentiles[f"{phase}_max_us"] = int(ordered[-1])
    return Exact(
        records=count,
        request_bytes=int(columns["request_bytes"].sum(dtype=np.int64)),
        response_bytes=int(columns["response_bytes"].sum(dtype=np.int64)),
        percentiles=percentiles,
    )


def _logged(folder: Path, topic: str) -> Iterator[Any]:
    """The requests in the log, some batches at a time."""
    values: list[bytes | None] = []
    for path in sorted(folder.glob(f"{topic}-[0-9]*/*.log")):
        if not path.stat().st_size:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            view = log[:]
        for number, (position, _) in enumerate(iter_batches(view)):
            values += decode_values(view, position)
            if number % _BATCHES == _BATCHES - 1:
                yield _requests(values)
                values = []
    yield _requests(values)


def _requests(values: list[bytes | None]) -> Any:
    requests, _ = decode_columns(pa.array(values, pa.binary()))
    table = pa.Table.from_batches([requests]).select(_COLUMNS)
    for name in ("client_id", "listener"):  # dictionaries differ from piece to piece
        at = table.column_names.index(name)
        table = table.set_column(at, name, table[name].cast(pa.string()))
    return table


#: By which part of itself a percentile may be wrong.
ERROR_MAX = 0.01
_SHOWN = 10


@attrs.define
class Compared:
    """What a comparison found.

    Attributes:
        rows: how many rows of the results were looked at.
        percentiles: how many percentiles and maxima were.
        worst: the largest relative error among them.
        wrong: what is not as it must be, in words.
    """

    rows: int = 0
    percentiles: int = 0
    worst: float = 0.0
    wrong: list[str] = attrs.field(factory=list)

    def told(self) -> list[str]:
        """The first of what is wrong, and how much more there is."""
        more = len(self.wrong) - _SHOWN
        return self.wrong[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])


def compare(exact: Mapping[Key, Exact], table: Any) -> Compared:
    """Compare the table ``requests`` of the results with what is exactly so."""
    compared = Compared()
    missing = dict(exact)
    for row in table.to_pylist():
        key = (row["window"].astimezone(UTC), row["api"], row["client_id"], row["listener"])
        name = f"{key[0]:%H:%M} {key[1]} of {key[2]!r} by {key[3]}"
        expected = missing.pop(key, None)
        if expected is None:
            compared.wrong.append(f"{name}: stands twice" if key in exact else f"{name}: never was")
            continue
        compared.rows += 1
        _compare_row(compared, name, expected, row)
    compared.wrong += [f"{key}: is missing" for key in missing]
    return compared


def _compare_row(compared: Compared, name: str, expected: Exact, row: Mapping[str, Any]) -> None:
    for column in ("records", "request_bytes", "response_bytes"):
        if row[column] != getattr(expected, column):
            compared.wrong.append(
                f"{name}: {column} is {row[column]:,}, not {getattr(expected, column):,}"
            )
    for column, exactly in expected.percentiles.items():
        compared.percentiles += 1
        error = abs(row[column] - exactly) / max(exactly, 1)
        compared.worst = max(compared.worst, error)
        if error > ERROR_MAX:
            compared.wrong.append(f"{name}: {column} is {row[column]}, exactly {exactly}")
