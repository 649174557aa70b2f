"""Computes the results of a closed minute from rows of sums: estimates, percentiles and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trionet.protocol import error_codes
from trionet.protocol.messages.registry import APIS
from trionet.protocol.request_log import CLOSED, GONE, NO_RESPONSE, RESPONDED, SAMPLE_ALL

from ...protocol.records.columnar._arrow_columns import number_column
from ._partials import (
    CELL_NUMBERS,
    KEYS,
    MAXIMA,
    REQUESTS,
    SUMS,
    TIMES,
    Numbers,
    cell_numbers,
    matrix,
    merged,
    rows,
    unfolded,
)
from .histogram import BUCKETS_MAX, percentiles

#: The percentiles of each of ``TIMES``, in thousandths.
PER_MILLE: Final = (500, 950, 990, 999)

_ENDS: Final = {RESPONDED: "answered", NO_RESPONSE: "unanswered", CLOSED: "closed", GONE: "gone"}
_ERRORS: Final = {
    code: name for name, code in vars(error_codes).items() if name.isupper() and type(code) is int
}

#: Larger sums of sampled records are capped at this value, which doubles represent exactly.
SUM_MAX: Final = 1 << 53

#: The columns of estimated rows, for Spark.
COLUMNS: Final = (
    "kind int, window bigint, api_key int, api string, client_id string, listener string,"
    " principal string, end string, error_code int, error string, reason string,"
    " sums array<bigint>, maxima array<bigint>, percentiles array<bigint>,"
    " cells array<int>, counts array<bigint>"
)


def estimate(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the results computed from one task's rows.

    Args:
        batches: Arrow batches with the columns of :mod:`._partials`. Rows that differ only in their
            sampling rate must be in the same task.
    """
    for of_kind in merged(batches):
        kind = of_kind["kind"][0].as_py()
        for estimates in merged([_estimated(of_kind, kind)]):
            yield _result(estimates, kind)


def _estimated(batch: Any, kind: int) -> Any:
    """Scale sampled rows up to all requests, except the first sum, which counts log records."""
    ppm = batch["sample_ppm"].to_numpy().astype(np.int64)
    sums = matrix(batch["sums"], len(SUMS[kind])).copy()
    sums[:, 1] = sums[:, 0]
    sums[:, 1:] = _scaled(sums[:, 1:], ppm[:, None])
    of_row, cells, counts = unfolded(batch)
    numbered = cell_numbers(of_row, cells)
    keys: dict[str, Any] = {
        name: batch[name] for name, _ in KEYS if name not in ("kind", "sample_ppm")
    }
    keys["sample_ppm"] = np.full(len(ppm), SAMPLE_ALL)
    return rows(
        kind,
        keys,
        sums,
        matrix(batch["maxima"], len(MAXIMA[kind])),
        numbered,
        _scaled_cells(numbered // BUCKETS_MAX, counts, ppm[of_row]),
    )


def _scaled_cells(histogram: Numbers, counts: Numbers, ppm: Numbers) -> Numbers:
    """Scale the counts of histogram cells by scaling the cumulative counts.

    If each count were scaled separately, equal counts would all be rounded in the same direction.
    At a sampling rate of 0.7, every count of 1 would stay 1. Since most buckets of slow requests
    have a count of 1, slow requests would be underestimated.
    """
    until = np.cumsum(counts)
    _, first, of_cell = np.unique(histogram, return_index=True, return_inverse=True)
    below = (until - counts)[first][of_cell]
    return _scaled(until - below, ppm) - _scaled(until - counts - below, ppm)


def _scaled(counts: Numbers, ppm: Numbers) -> Numbers:
    # Halves are always rounded up, so that the estimate grows with the count.
    # Capped, since sums of forged records may exceed what an integer can hold.
    scaled = np.minimum(np.floor(counts * (SAMPLE_ALL / ppm) + 0.5), SUM_MAX).astype(np.int64)
    # Without sampling the counts are exact; doubles would round them beyond 2**53.
    return np.where(ppm == SAMPLE_ALL, counts, scaled)


def _result(batch: Any, kind: int) -> Any:
    length = batch.num_rows
    maxima = matrix(batch["maxima"], len(MAXIMA[kind]))
    found = _percentiles(batch, maxima) if kind == REQUESTS else np.zeros((length, 0), np.int64)
    bounds = number_column(pa.int32(), (np.arange(length + 1) * found.shape[1]).astype(np.int32))
    columns = {name: batch[name] for name in batch.schema.names if name != "sample_ppm"}
    columns["api"] = _named(batch["api_key"], api_name)
    columns["error"] = _named(batch["error_code"], error_name)
    columns["end"] = _named(batch["end"], end_name)
    columns["percentiles"] = pa.ListArray.from_arrays(
        bounds, number_column(pa.int64(), found.reshape(-1))
    )
    names = [each.split()[0] for each in COLUMNS.split(", ")]
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def _percentiles(batch: Any, maxima: Numbers) -> Numbers:
    """Return the percentiles of each row, for one of ``TIMES`` after the other."""
    length = batch.num_rows
    of_row, cells, counts = unfolded(batch)
    every = np.arange(length)[:, None] * CELL_NUMBERS + np.arange(len(TIMES)) * BUCKETS_MAX
    begins = np.searchsorted(cell_numbers(of_row, cells), every.reshape(-1))
    bounds = np.append(begins, len(cells))
    columns = [percentiles(cells % BUCKETS_MAX, counts, bounds, each) for each in PER_MILLE]
    found = np.stack(columns, axis=1).reshape(length, len(TIMES), len(PER_MILLE))
    # The middle of the last bucket may be greater than every value in it.
    return np.minimum(found, maxima[:, :, None]).reshape(length, -1)


def _named(column: Any, name: Callable[[int], str]) -> Any:
    encoded = pc.dictionary_encode(column)
    names = pa.array([name(each) for each in encoded.dictionary.to_pylist()], pa.string())
    return names.take(encoded.indices)


def api_name(api_key: int) -> str:
    """Return Kafka's name for an API, or ``Api N``."""
    return APIS[api_key][1] if api_key in APIS else f"Api {api_key}"


def error_name(error_code: int) -> str:
    """Return Kafka's name for an error code, or ``ERROR_N``."""
    return _ERRORS.get(error_code, f"ERROR_{error_code}")


def end_name(end: int) -> str:
    """Return the name for how a request ended, or ``end N``."""
    return _ENDS.get(end, f"end {end}")
