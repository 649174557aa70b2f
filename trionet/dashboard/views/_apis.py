"""The requests by API: counts, latencies, and the time in each of Kafka's phases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment

from ...metrics._rates import bucket_of, upper_of
from ...metrics._request_times import STEP_NS
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._graphs import (
    graph,
    heat_strip,
    legend,
    part_bar,
    samples,
    stacked_bar,
    time_axis,
)
from ..drawing._table import (
    Column,
    Table,
    alarm_if,
    axis_line,
    chart_cells,
    chart_line,
    layout,
    table_of,
    trend_column,
)
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._figures import History
    from ..model._model import Model
    from ..model._rows import ApiRow, RequestRow

#: The six phases whose sum is the seventh, the total.
PHASE_NAMES: Final = ("queue", "local", "remote", "throttle", "response queue", "send")
_PHASES_TITLE: Final = "Phases, mean of the last 10 seconds"
_HISTOGRAM_TITLE: Final = "Requests by total time, last 10 seconds"
#: The height of the latency histogram, in lines.
HISTOGRAM_LINES: Final = 8
#: The minimum width of a histogram, so that a single bucket is not as wide as the screen: from one
#: time to the fourfold.
OCTAVES_MIN: Final = 2
#: The step in which brokers measure times, in ms.
STEP_MS: Final = STEP_NS / 1e6


def phase_bar(row: ApiRow | RequestRow, width: int, pen: Pen) -> Line:
    """Draw the phases of a row side by side."""
    return stacked_bar(row.phases_ms[: len(PHASE_NAMES)], width, pen, PHASE_NAMES)


def _phase_ms(index: int, row: ApiRow) -> float | None:
    return row.phases_ms[index] if row.phases_ms else None


def _mean_ms(row: ApiRow) -> float | None:
    return row.phases_ms[-1] if row.phases_ms else None


API_COLUMNS: Final[tuple[Column[ApiRow], ...]] = (
    # At 120 columns, as wide as the longest name but a few.
    Column("name", "API", 21, grow=1),
    Column("rate", "REQ/S", 8, text=units.rate, right=True),
    Column("requests", "TOTAL", 8, text=units.count, right=True, priority=3),
    Column(
        "error_rate",
        "ERR/S",
        7,
        text=units.rate,
        right=True,
        priority=2,
        style=alarm_if("error_rate"),
    ),
    Column("errors", "ERRORS", 8, text=units.count, right=True, priority=4),
    Column("p50_ms", "P50", 8, text=units.milliseconds, right=True),
    Column("p99_ms", "P99", 8, text=units.milliseconds, right=True),
    Column("max_ms", "MAX", 8, text=units.milliseconds, right=True, priority=3),
    Column("mean_bytes", "SIZE", 8, text=units.size, right=True, priority=4),
    trend_column("rate", 12, priority=5),
    Column(
        "mean_ms",
        "WHERE THE TIME GOES",
        20,
        _mean_ms,
        units.milliseconds,
        priority=1,
        grow=3,
        draw=phase_bar,
    ),
    *(
        Column(f"{name.replace(' ', '_')}_ms", name, 0, partial(_phase_ms, index), is_detail=False)
        for index, name in enumerate(PHASE_NAMES)
    ),
)


def phases_legend(columns: Sequence[Column[ApiRow]], pen: Pen) -> list[Line]:
    """Return what the colours of the phases mean, if there is room for the column with them."""
    has_phases = any(column.draw is phase_bar for column, _ in layout(columns, pen.width))
    return [legend(PHASE_NAMES, pen)] if has_phases else []


class ApisView(View):
    """A table of all APIs, sorted by request rate."""

    name = "apis"
    key = "3"
    title = "APIs"
    help = (
        "All requests by API. Rates cover the time since the last read. Times, sizes and phases "
        "cover the last ten seconds. The bar divides the mean time of a request into Kafka's "
        "phases: in the request queue, in the handler (local), waiting for other brokers or data "
        "(remote), throttled, in the response queue, and being sent. Enter shows the latencies of"
        " one API."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "REQ/S": "requests per second",
        "TOTAL": "requests since the start",
        "ERR/S": "errors in responses per second",
        "ERRORS": "errors since the start",
        "P50 P99 MAX": "times that half, 99 of 100, and all of the requests do not exceed",
        "SIZE": "mean size of a request",
        "TREND": "REQ/S of the last minutes",
    }
    empty = "No requests yet. Any client sends some: trionet topics list, for example."
    opens = "API"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        return phases_legend(API_COLUMNS, pen) if model.apis.missing is None else []

    def table(self, model: Model) -> Table[ApiRow]:
        return table_of(model.apis, API_COLUMNS, "name", sort="rate", descending=True)

    def details(self, row: ApiRow, model: Model, pen: Pen) -> Iterator[Line]:  # noqa: ARG002
        yield pen.rule(_PHASES_TITLE)
        yield from phase_lines(row.phases_ms, pen)
        yield []
        yield pen.rule(_HISTOGRAM_TITLE)
        yield from histogram(row.buckets, pen)

    def opened(self, row: ApiRow) -> View:
        return ApiView(row.name)


class ApiView(View):
    """The phases and latencies of one API.

    Args:
        api: the name of the API in Kafka.
    """

    name = "api"
    help = (
        "The mean time of each phase, and the distribution of total times, over the last ten "
        "seconds. The time axis is logarithmic, and the height is the number of requests. The "
        "chart below has one column per read, the newest at the right. The label of each line is "
        "the upper bound of its total times, and the density is the share of requests."
    )

    def __init__(self, api: str) -> None:
        self.title = api
        self._api = api

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.apis.get(self._api)
        if row is None:
            yield [pen.text(f" No {self._api} requests were received.", palette.NOTE)]
            return
        yield chart_line(
            "requests",
            row.history.values(samples(chart_cells(pen), pen)),
            units.per_second(row.rate),
            pen,
        )
        yield axis_line(row.history, pen)
        yield [
            pen.text(f" {row.requests:,} since start, {row.errors:,} with errors; mean size "),
            pen.text(units.size(row.mean_bytes)),
        ]
        yield []
        yield pen.rule(_PHASES_TITLE)
        yield from phase_lines(row.phases_ms, pen)
        yield []
        yield pen.rule(_HISTOGRAM_TITLE)
        yield from histogram(row.buckets, pen)
        yield []
        yield pen.rule("Share of requests by total time, read by read")
        yield from heat_lines(row.spreads, row.history, pen)


def phase_lines(phases_ms: Sequence[float], pen: Pen) -> Iterator[Line]:
    """Draw a line for each phase with its time and its share, and the total time.

    Args:
        phases_ms: the times of the phases and in total; empty if there was no request.
        pen: the pen for drawing.
    """
    if not phases_ms:
        yield [Segment(" no requests", palette.DIM)]
        return
    total = phases_ms[-1]
    width = max(0, pen.width - 40)
    for index, (name, ms) in enumerate(zip(PHASE_NAMES, phases_ms, strict=False)):
        share = ms / total if total else 0.0
        filled = round(max(0.0, min(1.0, share)) * width)
        yield [
            pen.label(f" {name}", 17),
            pen.cell(units.milliseconds(ms), 9, palette.BOLD, right=True),
            pen.cell(units.percent(share), 8, right=True),
            Segment("  "),
            part_bar(index, filled or (1 if ms else 0), pen),
        ]
    yield [pen.cell(" total", 17), pen.cell(units.milliseconds(total), 9, palette.BOLD, right=True)]


def histogram(buckets: Sequence[tuple[float, int]], pen: Pen) -> Iterator[Line]:
    """Draw vertical bars over a logarithmic time axis.

    Args:
        buckets: the upper bounds in ms, ascending, and the number of requests in each bucket.
        pen: the pen for drawing.
    """
    if not buckets:
        yield [Segment(" no requests", palette.DIM)]
        return
    width = max(10, pen.width - 12)
    spans = [(*_span(upper), count) for upper, count in buckets]
    low, high = spans[0][0], spans[-1][1]
    margin = max(0.0, OCTAVES_MIN - (high - low)) / 2
    low, high = low - margin, high + margin
    counts = _columns(spans, low, high, samples(width, pen))
    most = max(counts)
    values = [count or None for count in counts]  # what is empty has no line at its foot either
    for index, line in enumerate(graph(values, width, HISTOGRAM_LINES, pen)):
        label = units.count(most) if index == 0 else ""
        yield [pen.cell(label, 9, palette.DIM, right=True), Segment(" "), *line]
    ends = [units.milliseconds(2**exponent) for exponent in (low, (low + high) / 2, high)]
    yield [Segment(" " * 10), pen.cell(_axis(ends, width), width, palette.DIM)]


def _span(upper_ms: float) -> tuple[float, float]:
    """Return the binary logarithms of the times in ms between which a bucket counts requests."""
    bucket = bucket_of(round(upper_ms / STEP_MS))
    # Requests that take less than a step are counted as 0.
    first = upper_of(bucket - 1) + 1 if bucket else 0.5
    return math.log2(first * STEP_MS), math.log2((upper_of(bucket) + 1) * STEP_MS)


def heat_lines(
    spreads: Sequence[Mapping[int, int] | None], history: History, pen: Pen
) -> Iterator[Line]:
    """Draw latency distributions, with reads from left to right and longer times on top.

    Args:
        spreads: the distributions; see :attr:`.ApiRow.spreads`.
        history: a figure that was read with them, for the times of the reads.
        pen: the pen for drawing.
    """
    width = max(10, pen.width - 12)
    shown = [each or {} for each in spreads][-width:]
    exponents = {exponent for each in shown for exponent in each}
    if not exponents:
        yield [Segment(" no requests", palette.DIM)]
        return
    finished = [sum(each.values()) for each in shown]
    for exponent in range(max(exponents), min(exponents) - 1, -1):
        counts = (each.get(exponent, 0) for each in shown)
        shares = [
            count / many if many else 0.0 for count, many in zip(counts, finished, strict=True)
        ]
        label = pen.cell(units.milliseconds(2.0**exponent), 9, palette.DIM, right=True)
        yield [label, Segment(" " * (1 + width - len(shown))), *heat_strip(shares, 1.0, pen)]
    # One value in a cell.
    axis = time_axis(history.seconds(len(shown)), samples(len(shown), pen), width, pen)
    yield [Segment(" " * 10), axis]


def _axis(labels: Sequence[str], width: int) -> str:
    """Draw labels at the left, in the middle and at the right, or one if all are the same."""
    left, middle, right = labels
    if left == right:
        return f"{middle:^{width}}"
    between = f"{middle:^{width}}"
    return left + between[len(left) : width - len(right)] + right


def _columns(
    spans: Sequence[tuple[float, float, int]], low: float, high: float, count: int
) -> list[float]:
    """Return the number of requests in each column of a histogram.

    A bucket is spread over all columns that it spans: short times have few buckets, and the columns
    between their bounds would look like gaps in the distribution.

    Args:
        spans: the logarithms between which each bucket lies, and its number of requests.
        low: the logarithm at which the first column begins.
        high: the logarithm at which the last column ends.
        count: the number of columns.
    """
    found = [0.0] * count
    per_column = (high - low) / count
    for begin, end, requests in spans:
        first, last = (begin - low) / per_column, (end - low) / per_column
        for column in range(int(first), min(count, math.ceil(last))):
            covered = min(last, column + 1) - max(first, column)
            found[column] += requests * max(0.0, covered) / (last - first)
    return found
