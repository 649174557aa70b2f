"""Detects anomalies: values for a minute that are far from the median of the preceding hour.

A value is an anomaly if it is at least ``SCORE_MIN`` spreads from the median. The spread is the
median absolute deviation, scaled to match a standard deviation. It has lower bounds, a tenth of the
median and a constant per measure: otherwise the first change in a nearly constant value would be an
anomaly. A minute without requests counts as 0 requests, so a client that stops sending is detected.
A minute is judged only if the preceding hour has at least ``MINUTES_MIN`` minutes of data.

The mean and the standard deviation would be unsuitable: an outlier earlier in the hour would
inflate them and hide the next outlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...protocol.records.columnar._arrow_columns import number_column
from ._partials import Groups, Numbers, taken
from ._storage import TRAILING_MINUTES

#: A value this many spreads from the median is an anomaly.
SCORE_MIN: Final = 5.0
#: The minimum number of minutes with data in the preceding hour.
MINUTES_MIN: Final = 10
#: The minimum spread, as a fraction of the median.
SPREAD_MIN: Final = 0.1
#: The standard deviation of a normal distribution, in median absolute deviations.
_NORMAL: Final = 1.4826

#: The measures, and the minimum spread of each.
MEASURES: Final[Mapping[str, float]] = {
    "requests_per_s": 1.0,
    "error_share": 0.01,
    "total_p99_us": 1000.0,
}

#: The columns of the requests table to read, and the expressions selected from them, for Spark.
TABLE: Final = (
    "window timestamp, api_key int, api string, client_id string, listener string,"
    " requests bigint, requests_per_s double, errors bigint, total_p99_us bigint"
)
READ: Final = (
    "unix_seconds(window) div 60 as window",
    *("api_key", "api", "client_id", "listener", "requests_per_s"),
    "errors / requests as error_share",
    "cast(total_p99_us as double) as total_p99_us",
)
#: The columns of the anomalies table.
COLUMNS: Final = (
    "window bigint, api_key int, api string, client_id string, listener string, measure string,"
    " value double, expected double, spread double, score double, minutes int"
)
#: The columns that identify a series.
KEYS: Final = ("api_key", "api", "client_id", "listener")

Doubles = NDArray[np.float64]


@attrs.frozen
class AnomalyDetector:
    """Detects anomalies in a range of minutes; each task passes the series that it holds.

    Attributes:
        windows: the minutes with records, ascending, starting an hour before ``first``.
        first: the first minute to judge.
    """

    windows: Sequence[int]
    first: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the anomalies in the series of one task.

        Args:
            batches: Arrow batches with the columns of ``READ`` and all rows of each series.
        """
        read = list(batches)
        if not any(each.num_rows for each in read):
            return
        table = pa.Table.from_batches(read).combine_chunks()
        [batch] = table.to_batches()
        place = np.searchsorted(np.asarray(self.windows), batch["window"].to_numpy())
        series = Groups.by([batch["api_key"].to_numpy(), *(batch[name] for name in KEYS[1:])])
        for measure in MEASURES:
            values = np.zeros((len(series), len(self.windows)))
            values[series.of_row, place] = batch[measure].to_numpy()
            is_there = np.zeros(values.shape, bool)
            is_there[series.of_row, place] = True
            yield from self._of_measure(measure, values, is_there, batch, series)

    def _of_measure(
        self, measure: str, values: Doubles, is_there: NDArray[np.bool_], batch: Any, series: Groups
    ) -> Iterator[Any]:
        for at, window in enumerate(self.windows):
            begin = int(np.searchsorted(self.windows, window - TRAILING_MINUTES))
            if window < self.first or at - begin < MINUTES_MIN:
                continue
            if measure == "requests_per_s":
                judged = is_there[:, begin : at + 1].any(axis=1)
                expected, spread = median_and_spread(values[:, begin:at], MEASURES[measure])
            else:  # without requests, a share or a time is undefined, not 0
                judged = is_there[:, at] & (is_there[:, begin:at].sum(axis=1) >= MINUTES_MIN)
                known = np.where(is_there[judged, begin:at], values[judged, begin:at], np.nan)
                expected, spread = np.zeros(len(judged)), np.ones(len(judged))
                expected[judged], spread[judged] = median_and_spread(known, MEASURES[measure])
            score = (values[:, at] - expected) / spread
            found = np.flatnonzero(judged & (np.abs(score) >= SCORE_MIN))
            if len(found):
                figures = (values[found, at], expected[found], spread[found], score[found])
                yield _rows(batch, series.first[found], window, measure, figures, at - begin)


def median_and_spread(values: Doubles, spread_min: float) -> tuple[Doubles, Doubles]:
    """Return the median and the spread of each row, ignoring NaN.

    Args:
        values: a matrix with a row per series and a column per minute.
        spread_min: the minimum spread.
    """
    if not len(values):
        return np.zeros(0), np.ones(0)
    median: Doubles = np.nanmedian(values, axis=1)
    distance = np.nanmedian(np.abs(values - median[:, None]), axis=1)
    least = np.maximum(SPREAD_MIN * np.abs(median), spread_min)
    return median, np.maximum(_NORMAL * distance, least)


def _rows(
    batch: Any,
    at: Numbers,
    window: int,
    measure: str,
    figures: tuple[Doubles, Doubles, Doubles, Doubles],
    minutes: int,
) -> Any:
    keys = taken({name: batch[name] for name in KEYS}, at)
    count = len(at)
    columns = [
        pa.repeat(pa.scalar(window, pa.int64()), count),
        *keys.values(),
        pa.repeat(pa.scalar(measure), count),
        *(number_column(pa.float64(), each) for each in figures),
        pa.repeat(pa.scalar(minutes, pa.int32()), count),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[n.split()[0] for n in COLUMNS.split(", ")])
