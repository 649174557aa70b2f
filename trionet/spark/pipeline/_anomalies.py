"""Detects anomalies: signals of a minute that are far from those of the preceding hour.

A value is compared with the median of the preceding hour. Its distance is measured in spreads: the
median absolute deviation, scaled to match a standard deviation, but not less than what chance alone
does to a count of that size, and not less than a fraction of the median. The mean and the standard
deviation would be unsuitable: an outlier earlier in the hour would inflate them and hide the next
outlier.

A large distance alone is not worth a page. A deviation also needs

* enough data: a percentile of a minute needs ``P50_RECORDS_MIN`` or ``P99_RECORDS_MIN`` requests,
  a share of errors ``FAILED_MIN`` errors;
* a size that matters (the ``*_MIN`` of each measure);
* a direction that is bad: times and errors that fall are good news. A client that sends more is a
  job; it is an anomaly if the API, listener or broker has much more to do than usual. A client
  that sends much less is one if it has sent in nearly every minute of the hour;
* to be new: see :func:`recurs`. In the first hour, in which hourly jobs have not been seen yet,
  more of an increase is needed (``FIRST_HOUR``), and more requests are judged of the broker only.

What a client does may explain the deviation of an API or of the whole broker without being one
itself: a client may send as much more as it likes. The client that adds most to a deviation is
found, too, with ``is_part``; see :mod:`.incidents._culprits`.

The judgement of a minute depends on the signals before it, and not on micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ...protocol.records.columnar._arrow_columns import number_column
from . import _signals as levels
from ._partials import Groups, Numbers
from ._signals import FIGURES, KEYS, PHASES, WIDE

#: The number of preceding minutes with which the values of a minute are compared.
TRAILING_MINUTES: Final = 60
#: The minimum number of minutes with data in the preceding hour.
MINUTES_MIN: Final = 10
#: How long signals of wide levels are remembered: a day, and what :func:`recurs` looks at beside.
REMEMBERED_MINUTES: Final = 24 * 60 + 5

#: A value this many spreads from the median is an anomaly.
SCORE_MIN: Final = 5.0
#: Twice in a row, a smaller distance is no chance either.
SCORE_TWICE_MIN: Final = 4.0
#: The minimum spread, as a fraction of the median.
SPREAD_MIN: Final = 0.1
#: In the first hour, an increase must be this many times as large as the one needed later.
FIRST_HOUR: Final = 8.0

#: An increase of requests, connections or clients matters from these factors on.
REQUESTS_FACTOR_MIN: Final = 1.5
CLOSED_FACTOR_MIN: Final = 2.0
CLIENTS_FACTOR_MIN: Final = 1.5
#: The increases of a minute that matter, besides.
REQUESTS_MORE_MIN: Final = 120
CLOSED_MORE_MIN: Final = 30
CLIENTS_MORE_MIN: Final = 15
#: A decrease matters if no more than this is left: of all requests, or of those of a client.
WIDE_LEFT_MAX: Final = 0.7
CLIENT_LEFT_MAX: Final = 0.4
#: The share of the preceding minutes in which a client that can be missed has sent requests.
STEADY_MIN: Final = 0.9
#: The increase of a share of errors, or of throttled requests, that matters.
WIDE_SHARE_MIN: Final = 0.02
CLIENT_SHARE_MIN: Final = 0.05
FAILED_MIN: Final = 5
#: The increase of a time that matters: this factor, and this many microseconds.
TIME_FACTOR_MIN: Final = 1.5
TIME_MORE_MIN_US: Final = 1000.0
P50_RECORDS_MIN: Final = 5
#: With fewer records, a minute must have twice the score by itself.
P50_ALONE_MIN: Final = 20
P99_RECORDS_MIN: Final = 100
#: A pause of half a second makes a p99: by itself, a minute must have so many records, and three
#: times as many requests as usual must be slower than the usual p99, by their p97.
P99_ALONE_MIN: Final = 300

#: A job is as high as this share of an increase at its other times.
AS_HIGH: Final = 0.5
#: The minutes from one run of a job to the next, besides a day.
PERIODS: Final = (5, 6, 10, 12, 15, 20, 30, 60)
TIMES_LOOKED_AT: Final = 6
_DAY: Final = 24 * 60
#: How many minutes a job may be early or late that runs every hour or day.
_HOURLY_SLACK: Final = 2

#: The standard deviation of a normal distribution, in median absolute deviations.
_NORMAL: Final = 1.4826
#: The mean time of a client's requests grows by this share at least if it is to explain anything.
PART_TIME_MORE_MIN: Final = 0.5

#: The number of values that are sorted at once, which bounds the memory of a task.
_CELLS_MAX: Final = 2_000_000

#: The columns of the anomalies found, for Spark.
COLUMNS: Final = (
    "window bigint, level int, api_key int, client_id string, listener string, reason string,"
    " measure string, phase string, value double, expected double, spread double, score double,"
    " minutes int, excess double, base double, is_part boolean"
)

_KEYS: Final = ("level", "measure", "api_key", "client_id", "listener", "reason")

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]


@attrs.frozen
class Judged:
    """The judgement of a matrix of values, with a row per signal and a column per minute.

    Attributes:
        found: which values are anomalies.
        value: the values, in the unit of the measure.
        expected: the medians.
        spread: the spreads.
        score: the distances from the median, in spreads.
    """

    found: Flags
    value: Doubles
    expected: Doubles
    spread: Doubles
    score: Doubles


@attrs.frozen
class Signals:
    """The signals of one level, as matrices with a row per signal and a column per minute.

    Attributes:
        level: the level.
        figures: the figures by name; 0 in minutes without a signal.
        has_log: the minutes in which the log has any requests.
        first: the index of the first minute to judge.
        is_first_hour: of each minute to judge, whether no earlier hour is remembered.
    """

    level: int
    figures: dict[str, Doubles]
    has_log: Flags
    first: int
    is_first_hour: Flags

    @property
    def is_wide(self) -> bool:
        return self.level in WIDE

    def trailing(self, values: Doubles, is_known: Flags) -> tuple[Doubles, Doubles, Numbers]:
        """Return the median, the scaled deviation and the count of the hour before each minute.

        Args:
            values: a value for each signal and minute.
            is_known: which of them count.
        """
        known = np.where(is_known, values, np.inf)
        padded = np.pad(known, ((0, 0), (TRAILING_MINUTES, 0)), constant_values=np.inf)
        windows = sliding_window_view(padded, TRAILING_MINUTES, axis=1)[:, self.first : -1]
        ordered = np.sort(windows, axis=2)
        count = np.isfinite(ordered).sum(axis=2)
        median = _middle(ordered, count)
        with np.errstate(invalid="ignore"):
            distance = np.sort(np.abs(ordered - median[:, :, None]), axis=2)
        distance = _middle(distance, count)
        return median, _NORMAL * distance, count

    def totals(self, name: str) -> Doubles:
        """Return the sum of a figure over the hour before each minute to judge."""
        sums = np.cumsum(np.pad(self.figures[name], ((0, 0), (TRAILING_MINUTES + 1, 0))), axis=1)
        found: Doubles = (sums[:, TRAILING_MINUTES:-1] - sums[:, : -TRAILING_MINUTES - 1])[
            :, self.first :
        ]
        return found

    @property
    def minutes(self) -> Numbers:
        """The number of minutes with a log in the hour before each minute to judge."""
        sums = np.cumsum(np.pad(self.has_log.astype(np.int64), (TRAILING_MINUTES + 1, 0)))
        found: Numbers = (sums[TRAILING_MINUTES:-1] - sums[: -TRAILING_MINUTES - 1])[self.first :]
        return found

    def now(self, name: str) -> Doubles:
        """Return a figure of the minutes to judge."""
        return self.figures[name][:, self.first :]


def _middle(ordered: Doubles, count: Numbers) -> Doubles:
    """Return the median of the finite values, which come first, along the last axis."""
    upper = np.take_along_axis(ordered, (count // 2)[:, :, None] % ordered.shape[2], axis=2)
    lower = np.take_along_axis(ordered, (np.maximum(count - 1, 0) // 2)[:, :, None], axis=2)
    middle: Doubles = ((upper + lower) / 2)[:, :, 0]
    return np.where(count > 0, middle, 0.0)


def _is_high(score: Doubles, is_enough: Flags | None = None) -> Flags:
    """Return which scores are high enough, by themselves or with the one of the minute before.

    Args:
        score: the scores.
        is_enough: which of them may be high enough by themselves; None for all.
    """
    twice = score >= SCORE_TWICE_MIN
    before = np.zeros_like(twice)
    before[:, 1:] = twice[:, :-1]
    alone = score >= SCORE_MIN
    return (alone if is_enough is None else alone & is_enough) | (twice & before)


def _needed(signals: Signals, factor: float) -> Doubles:
    """Return the factor that an increase needs, which is larger in the first hour."""
    return np.where(signals.is_first_hour, 1 + FIRST_HOUR * (factor - 1), factor)


def rates(signals: Signals) -> Judged:
    """Judge the number of requests, of closed connections, or of clients."""
    values = signals.figures["requests"]
    has_log = np.broadcast_to(signals.has_log, values.shape)
    median, deviation, count = signals.trailing(values, has_log)
    value = signals.now("requests")
    # A record of a sampled log stands for several requests, which makes chance count for more.
    records = signals.totals("records")
    weight = np.divide(
        signals.totals("requests"), records, out=np.ones_like(records), where=records > 0
    )
    noise = np.sqrt(np.maximum(median, 1.0) * weight)
    spread = np.maximum(np.maximum(deviation, SPREAD_MIN * median), noise)
    score = (value - median) / spread
    is_judged = (count >= MINUTES_MIN) & signals.has_log[signals.first :]
    factor, more = _INCREASES.get(signals.level, (REQUESTS_FACTOR_MIN, REQUESTS_MORE_MIN))
    is_more = (value >= _needed(signals, factor) * median) & (value - median >= more)
    is_less = -score >= SCORE_MIN
    if signals.level in (levels.LISTENER, levels.API):
        is_more &= ~signals.is_first_hour
    if signals.is_wide:
        is_less &= value <= WIDE_LEFT_MAX * median
        found = _is_high(score) & is_more
        if signals.level != levels.CLOSED:
            found |= is_less
    else:
        sent = (values > 0).astype(np.float64)
        padded = np.cumsum(np.pad(sent, ((0, 0), (TRAILING_MINUTES + 1, 0))), axis=1)
        with_requests = padded[:, TRAILING_MINUTES:-1] - padded[:, : -TRAILING_MINUTES - 1]
        is_steady = with_requests[:, signals.first :] >= STEADY_MIN * count
        found = is_less & (value <= CLIENT_LEFT_MAX * median) & is_steady
        if signals.level == levels.CLOSED_OF_CLIENT:
            found = np.zeros_like(is_less)
    is_of_requests = signals.level not in (levels.CLOSED, levels.CLIENTS, levels.CLOSED_OF_CLIENT)
    scale = 1 / 60 if is_of_requests else 1.0
    return Judged(found & is_judged, value * scale, median * scale, spread * scale, score)


_INCREASES: Final = {
    levels.CLOSED: (CLOSED_FACTOR_MIN, CLOSED_MORE_MIN),
    levels.CLIENTS: (CLIENTS_FACTOR_MIN, CLIENTS_MORE_MIN),
}


def shares(signals: Signals, name: str) -> Judged:
    """Judge the share of requests that have failed, or were throttled.

    Args:
        signals: the signals.
        name: the figure that counts them.
    """
    requests = signals.figures["requests"]
    share = np.divide(
        signals.figures[name], requests, out=np.zeros_like(requests), where=requests > 0
    )
    median, deviation, count = signals.trailing(share, requests > 0)
    # A new client's first failures must not become what is usual of it.
    median = np.where(count >= MINUTES_MIN, median, 0.0)
    value, records = share[:, signals.first :], signals.now("records")
    pooled = (signals.totals(name) + 1) / (signals.totals("requests") + 1000)
    noise = np.sqrt(np.maximum(pooled, median) / np.maximum(records, 1))
    spread = np.maximum(np.maximum(deviation, noise), WIDE_SHARE_MIN / SCORE_MIN)
    score = (value - median) / spread
    more = WIDE_SHARE_MIN if signals.is_wide else CLIENT_SHARE_MIN
    found = _is_high(score) & (value - median >= more) & (count >= MINUTES_MIN)
    return Judged(found & (value * records >= FAILED_MIN), value, median, spread, score)


def times(signals: Signals, name: str, records_min: int) -> Judged:
    """Judge a percentile of the broker's time, by its logarithm.

    Args:
        signals: the signals.
        name: the figure.
        records_min: the number of records that a percentile needs.
    """
    has_enough = signals.figures["records"] >= records_min
    logs = np.log(np.maximum(signals.figures[name], 1.0))
    median, deviation, count = signals.trailing(logs, has_enough)
    spread = np.maximum(deviation, SPREAD_MIN)
    score = (logs[:, signals.first :] - median) / spread
    value, expected = signals.now(name), np.exp(median)
    is_more = value >= _needed(signals, TIME_FACTOR_MIN) * expected
    is_more &= value - expected >= TIME_MORE_MIN_US
    records = signals.now("records")
    score = np.where(records >= records_min, score, 0.0)
    if name == "p99_us":
        is_enough = (signals.now("p97_us") >= expected) & (records >= P99_ALONE_MIN)
    else:
        is_enough = (records >= P50_ALONE_MIN) | (score >= 2 * SCORE_MIN)
    found = _is_high(score, is_enough) & is_more
    return Judged(found & (count >= MINUTES_MIN), value, expected, spread * expected, score)


def _failed(signals: Signals) -> Judged:
    return shares(signals, "failed")


def _throttled(signals: Signals) -> Judged:
    return shares(signals, "throttled")


def _p50(signals: Signals) -> Judged:
    return times(signals, "p50_us", P50_RECORDS_MIN)


def _p99(signals: Signals) -> Judged:
    return times(signals, "p99_us", P99_RECORDS_MIN)


#: The measures of each level.
MEASURES: Final[dict[int, dict[str, Callable[[Signals], Judged]]]] = {
    levels.BROKER: {"requests_per_s": rates, "error_share": _failed, "throttled_share": _throttled},
    levels.LISTENER: {"requests_per_s": rates, "error_share": _failed},
    levels.API: {
        "requests_per_s": rates,
        "error_share": _failed,
        "broker_p50_us": _p50,
        "broker_p99_us": _p99,
    },
    levels.CLIENT: {
        "requests_per_s": rates,
        "error_share": _failed,
        "throttled_share": _throttled,
    },
    levels.SERIES: {"requests_per_s": rates, "error_share": _failed, "broker_p50_us": _p50},
    levels.CLOSED: {"connections_closed": rates},
    levels.CLIENTS: {"clients": rates},
    levels.CLOSED_OF_CLIENT: {"connections_closed": rates},
}
#: The measures that are numbers, not shares or times.
NUMBERS: Final = frozenset({"requests_per_s", "connections_closed", "clients"})


def recurs(values: Doubles, at: int, level: float, *, is_first_hour: bool = False) -> bool:
    """Return whether a high value comes again and again, as that of a periodic job.

    It does if there was such a value at two of the last ``TIMES_LOOKED_AT`` times of a job that
    runs every ``PERIODS`` minutes, or at one of them while fewer hours are remembered, or at the
    same time of the day before. There must be other values between them and now, and for half of
    the period: an incident that goes on, or went on, is no job. In the first hour, one such value
    is enough.

    Args:
        values: the values of a signal, minute by minute.
        at: the index of the minute.
        level: how high such a value is at least.
        is_first_hour: whether jobs are still to be learned.
    """
    is_high = values[max(0, at - REMEMBERED_MINUTES + 1) : at] >= level
    highs, lows = np.flatnonzero(is_high), np.flatnonzero(~is_high)
    # Those after the last low value belong to what is going on now.
    highs = highs[highs < lows[-1]] if len(lows) else highs[:0]
    earlier = len(is_high) - highs
    if is_first_hour:
        return bool((earlier >= PERIODS[0] - 1).any())
    if (np.abs(earlier - _DAY) <= _HOURLY_SLACK).any():
        return True
    run = np.cumsum(np.diff(highs, prepend=-2) > 1)
    length = np.bincount(run)[run]
    for period in PERIODS:
        slack = 1 if period < TRAILING_MINUTES else _HOURLY_SLACK
        known = min(TIMES_LOOKED_AT, len(is_high) // period)
        times = period * np.arange(1, known + 1)
        # What has lasted for longer was no run of such a job, and no two of them.
        at_times = (np.abs(earlier[:, None] - times) <= slack) & (2 * length <= period)[:, None]
        hits = min(at_times.any(axis=0).sum(), len(np.unique(run[at_times.any(axis=1)])))
        if hits >= (2 if known >= 4 else 1):
            return True
    return False


@attrs.frozen
class AnomalyDetector:
    """Detects anomalies in a range of minutes; each task passes the signals that it holds.

    Attributes:
        windows: the minutes with records that are remembered, ascending.
        first: the first minute to judge.
    """

    windows: Sequence[int]
    first: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the anomalies in the signals of one task.

        Args:
            batches: Arrow batches of :mod:`._signals`, with all rows of each signal.
        """
        filled = [each for each in batches if each.num_rows]
        if not filled:
            return
        [table] = pa.Table.from_batches(filled).combine_chunks().to_batches()
        level = table["level"].to_numpy()
        for number in np.intersect1d(level, list(MEASURES)):
            of_it = table.filter(pa.array(level == number))
            for part in self._divided():
                yield from part.of_level(int(number), of_it)

    def _divided(self) -> Iterator[AnomalyDetector]:
        """Yield detectors for the minutes to judge, each for at most a day of them.

        Matrices have a column for each minute, also for those without records. A single record of
        1970, which a wrong clock or a stranger may have written, would make millions of columns.
        """
        windows, first = np.asarray(self.windows), self.first
        while True:
            judged = windows[(windows >= first) & (windows < first + REMEMBERED_MINUTES)]
            if len(judged):
                oldest = first - 1 - REMEMBERED_MINUTES - TRAILING_MINUTES
                known = windows[(windows >= oldest) & (windows <= judged[-1])]
                yield AnomalyDetector(known.tolist(), first)
            later = windows[windows >= first + REMEMBERED_MINUTES]
            if not len(later):
                return
            first = int(later[0])

    def of_level(self, level: int, batch: Any) -> Iterator[Any]:
        """Yield the anomalies in the signals of one level."""
        # A minute is judged together with the one before it.
        earliest = self.windows[0] if level in WIDE else self.first
        begin = earliest - 1 - TRAILING_MINUTES
        length = self.windows[-1] + 1 - begin
        window = batch["window"].to_numpy()
        batch = batch.filter(pa.array((window >= begin) & (window <= self.windows[-1])))
        if not batch.num_rows:
            return
        window = batch["window"].to_numpy()
        keys = [batch["api_key"].to_numpy(), *(batch[name].fill_null("") for name in KEYS[2:])]
        groups = Groups.by(keys)
        has_log = np.zeros(length, bool)
        has_log[[each - begin for each in self.windows if each >= begin]] = True
        figures = {name: batch[name].to_numpy() for name in FIGURES}
        of_each = max(1, _CELLS_MAX // (length * TRAILING_MINUTES))
        for start in range(0, len(groups), of_each):
            count = min(of_each, len(groups) - start)
            at = np.flatnonzero((groups.of_row >= start) & (groups.of_row < start + count))
            place = (groups.of_row[at] - start, window[at] - begin)
            matrices = {}
            for name, values in figures.items():
                matrices[name] = np.zeros((count, length))
                matrices[name][place] = values[at]
            judged = self.first - 1 - begin
            signals = Signals(level, matrices, has_log, judged, self._is_first_hour())
            first = groups.first[start : start + count]
            for measure, judge in MEASURES[level].items():
                yield from self._of_measure(measure, judge(signals), signals, batch, first)

    def _is_first_hour(self) -> Flags:
        minutes = np.arange(self.first - 1, self.windows[-1] + 1)
        until = np.searchsorted(self.windows, minutes - TRAILING_MINUTES, side="right")
        found: Flags = until == np.searchsorted(self.windows, minutes - REMEMBERED_MINUTES, "right")
        return found

    def _of_measure(
        self, measure: str, judged: Judged, signals: Signals, batch: Any, first: Numbers
    ) -> Iterator[Any]:
        row, column = np.nonzero(judged.found[:, 1:])
        column += 1
        excess, base = _excess(measure, judged, signals)
        if signals.is_wide:
            places = zip(row.tolist(), column.tolist(), strict=True)
            is_new = [not _recurs(measure, judged, signals, *each) for each in places]
            row, column = row[is_new], column[is_new]
            anomalies = len(row)
        else:
            anomalies = len(row)
            its = batch.take(number_column(pa.int64(), first))
            parts = _parts(measure, judged, signals, excess, base, its)
            row, column = np.append(row, parts[0]), np.append(column, parts[1])
        if not len(row):
            return
        at = number_column(pa.int64(), first[row])
        length = len(row)
        columns = {
            "window": number_column(pa.int64(), column + self.first - 1),
            **{name: batch[name].take(at) for name in KEYS},
            "measure": pa.repeat(pa.scalar(measure), length),
            "phase": pa.array(_phases(measure, signals, row, column), pa.string()),
            "minutes": pa.array(signals.minutes[column], pa.int32()),
            "excess": number_column(pa.float64(), excess[row, column]),
            "base": number_column(pa.float64(), base[row, column]),
            "is_part": pa.array(np.arange(length) >= anomalies),
        }
        for name in ("value", "expected", "spread", "score"):
            columns[name] = number_column(pa.float64(), getattr(judged, name)[row, column])
        names = [each.split()[0] for each in COLUMNS.split(", ")]
        yield pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def _excess(measure: str, judged: Judged, signals: Signals) -> tuple[Doubles, Doubles]:
    """Return how much is unusual, and of how much; both of a whole are the sums of its parts.

    Medians and percentiles have no such sum, so a time is that of all requests together, above the
    mean of the preceding hour. The base is the number of requests, or of what there usually is.
    """
    if measure in NUMBERS:
        seconds = 60.0 if measure == "requests_per_s" else 1.0
        return seconds * (judged.value - judged.expected), seconds * judged.expected
    requests = signals.now("requests")
    if not measure.startswith("broker_"):
        return (judged.value - judged.expected) * requests, requests
    now = sum((signals.now(f"{phase}_us") for phase in PHASES), np.zeros_like(requests))
    return now - _usual_mean(signals) * requests, requests


def _usual_mean(signals: Signals) -> Doubles:
    usual = sum((signals.totals(f"{phase}_us") for phase in PHASES), np.zeros(()))
    found: Doubles = usual / np.maximum(signals.totals("requests"), 1)
    return found


def _parts(
    measure: str,
    judged: Judged,
    signals: Signals,
    excess: Doubles,
    base: Doubles,
    keys: Any,
) -> tuple[Numbers, Numbers]:
    """Return, of what is no anomaly, the rows and columns that add most to those of their whole.

    Only the greatest in each direction of each whole and minute: no other one can make most of it.
    """
    if measure.startswith("broker_"):
        usual = np.maximum(_usual_mean(signals), 1.0)
        is_unusual = excess >= PART_TIME_MORE_MIN * usual * base
        is_unusual &= signals.now("records") >= P50_RECORDS_MIN
        # How long the requests of a new client usually take is not known.
        is_unusual &= signals.totals("records") >= MINUTES_MIN * P50_RECORDS_MIN
    else:
        is_unusual = np.abs(judged.score) >= SCORE_MIN
        if measure in NUMBERS:
            is_unusual &= np.abs(excess) >= CLOSED_MORE_MIN
        else:
            is_unusual &= (judged.score > 0) & (excess >= FAILED_MIN)
    row, column = np.nonzero(is_unusual[:, 1:] & ~judged.found[:, 1:])
    column += 1
    each = excess[row, column]
    # Of equal ones the first by name, so that it makes no difference which of them are together.
    at = number_column(pa.int64(), np.ascontiguousarray(row))
    names = keys["client_id"].fill_null("").take(at).to_numpy(zero_copy_only=False)
    order = np.lexsort((names, -np.abs(each)))
    row, column, each = row[order], column[order], each[order]
    of_whole = [
        keys["api_key"].to_numpy(),
        *(keys[n].fill_null("") for n in ("listener", "reason")),
    ]
    wholes = Groups.by(of_whole).of_row
    _, first = np.unique(np.stack([wholes[row], column, each > 0]), axis=1, return_index=True)
    return row[first], column[first]


def _recurs(measure: str, judged: Judged, signals: Signals, row: int, column: int) -> bool:
    """Return whether an increase is that of a periodic job."""
    value, expected = judged.value[row, column], judged.expected[row, column]
    if value <= expected:
        return False
    figures = signals.figures
    if measure in NUMBERS:
        scale = figures["requests"][row, signals.first + column] / value
        values = figures["requests"][row]
    elif measure.endswith("_share"):
        name = "failed" if measure == "error_share" else "throttled"
        values, scale = figures[name][row] / np.maximum(figures["requests"][row], 1), 1.0
    else:
        # By its logarithm, too: the percentiles of a job differ more from time to time.
        values = np.log(np.maximum(figures[measure.removeprefix("broker_")][row], 1.0))
        value, expected, scale = np.log(value), np.log(expected), 1.0
    level = (expected + AS_HIGH * (value - expected)) * scale
    at = signals.first + column
    return recurs(values, at, level, is_first_hour=bool(signals.is_first_hour[column]))


def _phases(measure: str, signals: Signals, row: Numbers, column: Numbers) -> list[str | None]:
    """Return, of anomalies of a time, the phase whose mean has grown most."""
    if not measure.startswith("broker_"):
        return [None] * len(row)
    grown = []
    for phase in PHASES:
        name = f"{phase}_us"
        usual = signals.totals(name) / np.maximum(signals.totals("requests"), 1)
        mean = signals.now(name) / np.maximum(signals.now("requests"), 1)
        grown.append((mean - usual)[row, column])
    return [PHASES[place] for place in np.argmax(grown, axis=0)]


#: The rows of the table of anomalies before Spark has computed its columns.
ROWS: Final = pa.schema(
    [
        ("window", pa.int64()),
        ("api_key", pa.int32()),
        *((name, pa.string()) for name in ("api", "client_id", "listener", "reason")),
        *((name, pa.string()) for name in ("measure", "phase")),
        *((name, pa.float64()) for name in ("value", "expected", "spread", "score")),
        ("minutes", pa.int32()),
        ("incident", pa.string()),
    ]
)


def order(anomaly: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key by which anomalies are sorted: by their minutes first."""
    return (anomaly["window"], *(_sortable(anomaly[name]) for name in _KEYS))


def _sortable(value: Any) -> Any:
    return (value is not None, value) if value is None or isinstance(value, str) else value
