"""Renders a report as a self-contained HTML page, without scripts or external resources.

Its style sheet has a light and a dark scheme, and works on screen and in print.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element

from ...._util._text import printable
from ._charts import (
    SERIES_MAX,
    Bar,
    Mark,
    Series,
    append,
    heatmap,
    lines,
    node,
    stacked_bars,
    stacked_columns,
)
from ._charts import page as text_of
from ._figures import Anomaly, Report
from ._inputs import format_time
from ._sections import PARTS, Section, count, duration, limited, measure, overview, rate, sections

# Eight colours per scheme: the color-blind safe palette of Okabe and Ito, with a darker yellow on
# white, and lighter blue and black on black.
_LIGHT: Final = [
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#b8a800",
    "#777777",
]
_DARK: Final = [
    "#4da3e0",
    "#f0b030",
    "#2cc295",
    "#f07a35",
    "#e095c0",
    "#8fd0f5",
    "#f0e442",
    "#aaaaaa",
]
SERIES: Final = len(_LIGHT)


def _scheme(
    background: str, text: str, faint: str, line: str, alarm: str, series: Sequence[str]
) -> str:
    colours = "".join(f"--c{number}:{colour};" for number, colour in enumerate(series))
    return (
        f"--background:{background};--text:{text};--faint:{faint};--line:{line};"
        f"--alarm:{alarm};{colours}"
    )


def _series_style(number: int) -> str:
    colour = f"var(--c{number})"
    return (
        f".s{number}{{stroke:{colour}}}.f{number}{{fill:{colour}}}.b{number}{{background:{colour}}}"
    )


STYLE: Final = f"""
:root{{color-scheme:light dark;
{_scheme("#ffffff", "#1a1a1a", "#666666", "#dddddd", "#c00020", _LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{
{_scheme("#14171a", "#e6e6e6", "#9aa0a6", "#33383d", "#ff6b7d", _DARK)}}}}}
body{{margin:0 auto;max-width:60rem;padding:1rem;background:var(--background);color:var(--text);
font:15px/1.45 system-ui,sans-serif}}
h1{{font-size:1.5rem;margin:.5rem 0}}
h2{{font-size:1.15rem;margin:2rem 0 .5rem}}
p,figcaption{{color:var(--faint)}}
figure{{margin:1.2rem 0}}
figcaption{{font-weight:600;margin-bottom:.2rem}}
svg{{display:block;width:100%;height:auto;font:12px system-ui,sans-serif}}
svg text{{fill:var(--faint)}}
.end{{text-anchor:end}}
.middle{{text-anchor:middle}}
.grid{{stroke:var(--line);stroke-width:1}}
.line{{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}}
.hit{{fill:transparent}}
.hit:hover{{fill:var(--faint)}}
.heat{{fill:var(--c0)}}
.mark line{{stroke:var(--alarm);stroke-width:1;stroke-dasharray:2 3}}
.mark path{{fill:var(--alarm)}}
.legend{{list-style:none;margin:.3rem 0;padding:0;display:flex;flex-wrap:wrap;gap:.1rem 1rem;
font-size:.85rem;overflow-wrap:anywhere}}
.key{{display:inline-block;width:.8em;height:.8em;margin-right:.35em;border-radius:2px}}
.key.alarm{{background:var(--alarm)}}
.wide{{overflow-x:auto}}
table{{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}}
th,td{{padding:.2rem .7rem .2rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line)}}
th{{color:var(--faint);font-weight:600}}
td{{max-width:14rem;overflow-wrap:break-word}}
.overview td{{max-width:40rem}}
.number{{text-align:right}}
.number,.time{{white-space:nowrap}}
{"".join(map(_series_style, range(SERIES)))}
@media print{{body{{max-width:none}}figure,tr{{break-inside:avoid}}}}
""".strip()


#: The maximum number of APIs with a bar of their phases.
BARS_MAX: Final = 20
#: The maximum number of anomalies in the tooltip of a mark.
_TOOLTIP_MAX: Final = 5
_OTHERS: Final = "others"
#: The classes of columns, by the mark at the end of their headings.
_CLASSES: Final = {">": "number", "|": "time"}


def page(report: Report, top: int, made_at: datetime) -> str:
    """Render a report as HTML.

    Args:
        report: the report.
        top: the maximum number of rows per table.
        made_at: the current time, shown at the end of the page.
    """
    title = "Broker requests"
    head = node(
        "head",
        node("meta", charset="utf-8"),
        node("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # Defence in depth: even injected markup could not load or run anything.
        node(
            "meta",
            **{"http-equiv": "Content-Security-Policy"},
            content="default-src 'none'; style-src 'unsafe-inline'",
        ),
        node("title", title),
        node("style", STYLE),
    )
    incidents, *others = sections(report, top)
    body = node("body", node("h1", title), _overview(report), *_table(incidents), *_charts(report))
    for section in others:
        append(body, *_table(section))
    append(body, node("p", f"Written by trionet pipeline report at {format_time(made_at)}."))
    return text_of(node("html", head, body, lang="en"))


def _overview(report: Report) -> Element:
    rows = [node("tr", node("th", name), node("td", text)) for name, text in overview(report)]
    return node("div", node("table", *rows, class_="overview"), class_="wide")


def _charts(report: Report) -> Iterator[Element]:
    line, marks = report.timeline, _marks(report)
    rates = {
        name: [value / seconds for value, seconds in zip(values, line.seconds, strict=True)]
        for name, values in line.requests.items()
    }
    yield node("h2", "Over time")
    yield lines("Requests per second by API", line.bins, _series(rates), rate, marks=marks)
    percentiles = [Series(name, values) for name, values in line.percentiles.items()]
    yield lines(
        "Total time of all requests",
        line.bins,
        percentiles,
        duration,
        is_logarithmic=True,
        marks=marks,
    )
    slowest = _first_series(line.slowest)
    yield lines(
        "p99 of total time by API", line.bins, slowest, duration, is_logarithmic=True, marks=marks
    )
    yield heatmap("Distribution of total time", line.bins, line.heat, duration, marks=marks)
    if line.errors:
        yield stacked_columns("Errors", line.bins, _series(line.errors), count, marks=marks)
    if marks:
        text = (
            "anomalies: values that deviate from those of the preceding hour,"
            f" {count(report.anomaly_count)} in total"
        )
        legend = node("li", node("span", class_="key alarm"), text)
        yield node("ul", legend, class_="legend")
    bars = [
        Bar(printable(api.name), [api.traffic.mean_us(part) for part in PARTS])
        for api in report.apis[:BARS_MAX]
    ]
    yield node("h2", "Phases")
    yield stacked_bars("Where the time goes, on average", bars, list(PARTS.values()), duration)


def _series(values: Mapping[str, Sequence[float]]) -> Sequence[Series]:
    """Return at most as many series as a chart has colours, with the rest summed as "others"."""
    series = list(_first_series(values))
    if rest := list(values)[len(series) :]:
        series.append(
            Series(_OTHERS, [sum(each) for each in zip(*map(values.get, rest), strict=True)])
        )
    return series


def _first_series(values: Mapping[str, Sequence[float | None]]) -> Sequence[Series]:
    """Return at most as many series as a chart has colours, less one if "others" is needed."""
    names = list(values)
    names = names if len(names) <= SERIES_MAX else names[: SERIES_MAX - 1]
    return [Series(printable(name), values[name]) for name in names]


def _marks(report: Report) -> Sequence[Mark]:
    """Return a mark for each bin that has anomalies, at the time of the first one."""
    bins = report.timeline.bins
    in_order = sorted(report.anomalies, key=lambda each: (each.window, -abs(each.score)))
    by_bin = groupby(in_order, key=lambda each: int(bins.place(each.window)))
    return [_mark(list(each)) for _, each in by_bin]


def _mark(anomalies: Sequence[Anomaly]) -> Mark:
    text = "; ".join(map(_text, anomalies[:_TOOLTIP_MAX]))
    more = f"; and {len(anomalies) - _TOOLTIP_MAX} more" if len(anomalies) > _TOOLTIP_MAX else ""
    return Mark(anomalies[0].window, text + more)


def _text(anomaly: Anomaly) -> str:
    what, written = measure(anomaly.measure)
    value, expected = written(anomaly.value), written(anomaly.expected)
    series = f"{limited(anomaly.api)} of {limited(anomaly.client_id)}"
    return f"{series}: {what} {value}, expected {expected}"


def _table(section: Section) -> Iterator[Element]:
    yield node("h2", section.title)
    if not section.rows:
        yield node("p", section.placeholder)
        return
    classes = [_CLASSES.get(heading[-1], "") for heading in section.headings]
    head = _row("th", [heading.rstrip(">|") for heading in section.headings], classes)
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
