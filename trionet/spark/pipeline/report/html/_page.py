"""A report as one page of HTML, which needs nothing else: no network, no script. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element

from ....._util._printable import printable
from ..data._figures import Anomaly, Report
from ..data._time_range import shown
from ..text._quantities import count, duration, rate
from ..text._sections import PARTS, Section, measure, overview, sections
from ._bars import Bar, stacked_bars
from ._charts import SERIES_MAX, Mark, Series, heatmap, lines, stacked_columns
from ._markup import append, node
from ._markup import page as text_of
from ._style import STYLE

#: How many APIs have a bar of their phases.
BARS_MAX: Final = 20
#: Of how many anomalies the tooltip of a mark tells.
_TOLD_MAX: Final = 5
_OTHERS: Final = "others"


def page(report: Report, top: int, made_at: datetime) -> str:
    """The page.

    Args:
        report: what it says.
        top: of how many a table tells at most.
        made_at: when it is written.
    """
    title = "Requests of a broker"
    head = node(
        "head",
        node("meta", charset="utf-8"),
        node("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # Should something get in that is not meant to, a browser fetches and runs nothing.
        node(
            "meta",
            **{"http-equiv": "Content-Security-Policy"},
            content="default-src 'none'; style-src 'unsafe-inline'",
        ),
        node("title", title),
        node("style", STYLE),
    )
    body = node("body", node("h1", title), *_figures(report))
    for section in sections(report, top):
        append(body, *_table(section))
    append(body, node("p", f"Written by trionet pipeline report at {shown(made_at)}."))
    return text_of(node("html", head, body, lang="en"))


def _figures(report: Report) -> Iterator[Element]:
    rows = [node("tr", node("th", name), node("td", text)) for name, text in overview(report)]
    yield node("div", node("table", *rows), class_="wide")
    line, marks = report.timeline, _marks(report)
    rates = {
        name: [value / seconds for value, seconds in zip(values, line.seconds, strict=True)]
        for name, values in line.requests.items()
    }
    yield node("h2", "Over time")
    yield lines("Requests a second by API", line.bins, _series(rates), rate, marks=marks)
    percentiles = [Series(name, values) for name, values in line.percentiles.items()]
    yield lines(
        "Total time of all requests",
        line.bins,
        percentiles,
        duration,
        is_logarithmic=True,
        marks=marks,
    )
    slowest = _alone(line.slowest)
    yield lines(
        "p99 of total time by API", line.bins, slowest, duration, is_logarithmic=True, marks=marks
    )
    yield heatmap("How many requests took how long", line.bins, line.heat, duration, marks=marks)
    if line.errors:
        yield stacked_columns("Errors", line.bins, _series(line.errors), count, marks=marks)
    if marks:
        said = (
            f"anomalies: minutes unlike the hour before them, {count(report.anomaly_count)} in all"
        )
        legend = node("li", node("span", class_="key alarm"), said)
        yield node("ul", legend, class_="legend")
    bars = [
        Bar(printable(api.name), [api.traffic.mean_us(part) for part in PARTS])
        for api in report.apis[:BARS_MAX]
    ]
    yield node("h2", "Phases")
    yield stacked_bars("Where the time goes, on average", bars, list(PARTS.values()), duration)


def _series(values: Mapping[str, Sequence[float]]) -> Sequence[Series]:
    """As many as a chart has colours; what comes behind them is added up."""
    made = list(_alone(values))
    if rest := list(values)[len(made) :]:
        made.append(
            Series(_OTHERS, [sum(each) for each in zip(*map(values.get, rest), strict=True)])
        )
    return made


def _alone(values: Mapping[str, Sequence[float | None]]) -> Sequence[Series]:
    """As many as a chart has colours, less one for the others if there are more."""
    names = list(values)
    alone = names if len(names) <= SERIES_MAX else names[: SERIES_MAX - 1]
    return [Series(printable(name), values[name]) for name in alone]


def _marks(report: Report) -> Sequence[Mark]:
    """One for each bin that has anomalies, at the first of them."""
    bins = report.timeline.bins
    in_order = sorted(report.anomalies, key=lambda each: (each.window, -abs(each.score)))
    by_bin = groupby(in_order, key=lambda each: int(bins.place(each.window)))
    return [_mark(list(each)) for _, each in by_bin]


def _mark(anomalies: Sequence[Anomaly]) -> Mark:
    said = "; ".join(map(_said, anomalies[:_TOLD_MAX]))
    more = f"; and {len(anomalies) - _TOLD_MAX} more" if len(anomalies) > _TOLD_MAX else ""
    return Mark(anomalies[0].window, said + more)


def _said(anomaly: Anomaly) -> str:
    what, written = measure(anomaly.measure)
    value, expected = written(anomaly.value), written(anomaly.expected)
    who = f"{printable(anomaly.api)} of {printable(anomaly.client_id) or '(none)'}"
    return f"{who}: {what} {value}, expected {expected}"


def _table(section: Section) -> Iterator[Element]:
    yield node("h2", section.title)
    if not section.rows:
        yield node("p", section.nothing)
        return
    classes = ["number" if heading.endswith(">") else "" for heading in section.headings]
    head = _row("th", [heading.removesuffix(">") for heading in section.headings], classes)
    rows = [_row("td", row, classes) for row in section.rows]
    yield node("div", node("table", node("thead", head), node("tbody", *rows)), class_="wide")
    if section.note:
        yield node("p", section.note)


def _row(tag: str, texts: Sequence[str], classes: Sequence[str]) -> Element:
    cells = [
        node(tag, text, **({"class_": name} if name else {}))
        for text, name in zip(texts, classes, strict=True)
    ]
    return node("tr", *cells)
