"""What is unusual in a minute: beside the median of the hour before it.

A number is unusual if it is further from the median than ``SCORE_MIN`` spreads. The spread is the
median distance from the median, made comparable to a standard deviation; it is at least a tenth of
the median and a least number of each measure, or what hardly ever changes would be unusual at its
first change. A client that has gone silent has 0 requests, and is found; what the pipeline has not
seen for ``MINUTES_MIN`` minutes yet is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..aggregation._grouping import Groups, Numbers
from ..aggregation._partials import numbers
from ..aggregation._watermarks import TRAILING_MINUTES

#: From how many spreads on a number is unusual.
SCORE_MIN: Final = 5.0
#: How many minutes of the hour before have to be there.
MINUTES_MIN: Final = 10
#: The least spread, as a part of the median.
SPREAD_MIN: Final = 0.1
#: What the median distance of a normal distribution is of its standard deviation.
_NORMAL: Final = 1.4826

#: Each measure: the least spread.
MEASURES: Final[Mapping[str, float]] = {
    "requests_per_s": 1.0,
    "error_share": 0.01,
    "total_p99_us": 1000.0,
}

#: The columns of the table of requests that are looked at, and what is read of them, for Spark.
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
#: The columns of what is found.
COLUMNS: Final = (
    "window bigint, api_key int, api string, client_id string, listener string, measure string,"
    " value double, expected double, spread double, score double, minutes int"
)
#: What makes a series.
KEYS: Final = ("api_key", "api", "client_id", "listener")

Doubles = NDArray[np.float64]


@attrs.frozen
class Anomalies:
    """Looks for what is unusual in some minutes.

    Attributes:
        windows: the minutes with any records, ascending: those to judge, and the hour before.
        first: the first one to judge.
    """

    windows: Sequence[int]
    first: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The unusual of the series that one task has.

        Args:
            batches: of Arrow, with the columns of ``READ``; all rows of a series are among them.
        """
        read = list(batches)
        if not any(each.num_rows for each in read):
            return
        table = pa.Table.from_batches(read).combine_chunks()
        [batch] = table.to_batches()
        place = np.searchsorted(np.asarray(self.windows), batch["window"].to_numpy())
        keys = [each if name != "api_key" else each.to_numpy() for name, each in _keys(batch)]
        series = Groups.by(keys)
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
                expected, spread = usual(values[:, begin:at], MEASURES[measure])
            else:  # a share or a time of no requests is not one of 0
                judged = is_there[:, at] & (is_there[:, begin:at].sum(axis=1) >= MINUTES_MIN)
                known = np.where(is_there[judged, begin:at], values[judged, begin:at], np.nan)
                expected, spread = np.zeros(len(judged)), np.ones(len(judged))
                expected[judged], spread[judged] = usual(known, MEASURES[measure])
            score = (values[:, at] - expected) / spread
            found = np.flatnonzero(judged & (np.abs(score) >= SCORE_MIN))
            if len(found):
                told = (values[found, at], expected[found], spread[found], score[found])
                yield _rows(batch, series.first[found], window, measure, told, at - begin)


def usual(values: Doubles, spread_min: float) -> tuple[Doubles, Doubles]:
    """The median and the spread of each line; what is not a number is left out.

    Args:
        values: a line for each series, with a number of each minute.
        spread_min: the least spread.
    """
    if not len(values):
        return np.zeros(0), np.ones(0)
    median: Doubles = np.nanmedian(values, axis=1)
    distance = np.nanmedian(np.abs(values - median[:, None]), axis=1)
    least = np.maximum(SPREAD_MIN * np.abs(median), spread_min)
    return median, np.maximum(_NORMAL * distance, least)


def _keys(batch: Any) -> Iterator[tuple[str, Any]]:
    return ((name, batch[name]) for name in KEYS)


def _rows(
    batch: Any,
    at: Numbers,
    window: int,
    measure: str,
    told: tuple[Doubles, Doubles, Doubles, Doubles],
    minutes: int,
) -> Any:
    taken = [each.take(numbers(at, pa.int64())) for _, each in _keys(batch)]
    count = len(at)
    columns = [
        pa.repeat(pa.scalar(window, pa.int64()), count),
        *taken,
        pa.repeat(pa.scalar(measure), count),
        *(numbers(each, pa.float64()) for each in told),
        pa.repeat(pa.scalar(minutes, pa.int32()), count),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[n.split()[0] for n in COLUMNS.split(", ")])
