"""Draws SVG charts over time: lines, stacked columns and heatmaps.

The charts need no script. Lines and columns have a legend, and each data point a native tooltip.
The colours come from the page's style, which has a light and a dark scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element

import attrs

from ..data._bins import Bins
from ..data._figures import Heat
from ..data._time_range import format_time
from ..text._quantities import rounded
from ._markup import append, node
from ._scales import Linear, Logarithmic, Scale, time_ticks

#: The maximum number of series per chart; the page's style has a colour for each.
SERIES_MAX: Final = 8

WIDTH: Final = 900
HEIGHT: Final = 260
_LEFT: Final = 72
_RIGHT: Final = 24
_TOP: Final = 16
_BOTTOM: Final = 28
_PLOT_WIDTH: Final = WIDTH - _LEFT - _RIGHT
_PLOT_HEIGHT: Final = HEIGHT - _TOP - _BOTTOM
#: The number of shades in a heatmap.
_HEAT_STEPS: Final = 9

Format = Callable[[float], str]


@attrs.frozen
class Series:
    """A named series, with a value or None for each bin."""

    name: str
    values: Sequence[float | None]


@attrs.frozen
class Mark:
    """An event to mark on the time axis."""

    time: datetime
    text: str


def lines(
    title: str,
    bins: Bins,
    series: Sequence[Series],
    format_: Format,
    *,
    is_logarithmic: bool = False,
    marks: Iterable[Mark] = (),
) -> Element:
    """Draw a line per series, with gaps where values are missing."""
    values = [value for each in series for value in each.values if value is not None]
    scale: Scale = (
        Logarithmic.over(min(values, default=1), max(values, default=1))
        if is_logarithmic
        else Linear.over(max(values, default=0))
    )
    drawing = _frame(title, bins, scale, format_)
    for number, each in enumerate(series):
        append(drawing, *_line(number, each, bins, scale, format_))
    append(drawing, *_marks(marks, bins))
    return figure(title, drawing, [each.name for each in series])


def stacked_columns(
    title: str,
    bins: Bins,
    series: Sequence[Series],
    format_: Format,
    *,
    marks: Iterable[Mark] = (),
) -> Element:
    """Draw a column per bin, with the values of all series stacked."""
    sums = [sum(each.values[n] or 0 for each in series) for n in range(bins.count)]
    scale = Linear.over(max(sums, default=0))
    drawing = _frame(title, bins, scale, format_)
    gap = 1 if _PLOT_WIDTH / bins.count > 4 else 0
    for n in range(bins.count):
        base = 0.0
        for number, each in enumerate(series):
            value = each.values[n] or 0
            if value:
                top = _y(scale, base + value)
                rectangle = node(
                    "rect",
                    node("title", f"{each.name}, {format_time(bins.time(n))}: {format_(value)}"),
                    class_=f"f{number}",
                    x=_x(bins, n),
                    y=top,
                    width=max(_x(bins, n + 1) - _x(bins, n) - gap, 0.5),
                    height=_y(scale, base) - top,
                )
                append(drawing, rectangle)
                base += value
    append(drawing, *_marks(marks, bins))
    return figure(title, drawing, [each.name for each in series])


def heatmap(
    title: str, bins: Bins, cells: Sequence[Heat], format_: Format, *, marks: Iterable[Mark] = ()
) -> Element:
    """Draw a heatmap with a logarithmic axis; darker cells contain more requests."""
    scale = Logarithmic.over(
        min((cell.low for cell in cells), default=1), max((cell.high for cell in cells), default=1)
    )
    drawing = _frame(title, bins, scale, format_)
    most = max((cell.requests for cell in cells), default=1)
    for cell in cells:
        # The square root makes rare slow requests visible, which matter most.
        step = max(1, round(_HEAT_STEPS * (cell.requests / most) ** 0.5))
        top, bottom = _y(scale, cell.high), _y(scale, cell.low)
        between = f"{format_(cell.low)} to {format_(cell.high)}"
        rectangle = node(
            "rect",
            node("title", f"{format_time(bins.time(cell.bin))}, {between}: {cell.requests:,.0f}"),
            class_="heat",
            opacity=f"{step / _HEAT_STEPS:.2f}",
            x=_x(bins, cell.bin),
            y=top,
            width=max(_x(bins, cell.bin + 1) - _x(bins, cell.bin), 0.5),
            height=max(bottom - top, 0.5),
        )
        append(drawing, rectangle)
    append(drawing, *_marks(marks, bins))
    return figure(title, drawing, ())


def figure(title: str, drawing: Element, names: Sequence[str]) -> Element:
    """Combine a drawing with its title and legend."""
    wrapped = node("figure", node("figcaption", title), drawing)
    if names:
        keys = [
            node("li", node("span", class_=f"key b{number}"), name)
            for number, name in enumerate(names)
        ]
        append(wrapped, node("ul", *keys, class_="legend"))
    return wrapped


def _frame(title: str, bins: Bins, scale: Scale, format_: Format) -> Element:
    drawing = node("svg", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", **{"aria-label": title})
    for value in scale.ticks():
        y = _y(scale, value)
        line = node("line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y)
        label = node("text", rounded(format_(value)), class_="end", x=_LEFT - 6, y=y + 4)
        append(drawing, line, label)
    for time, text in time_ticks(bins.start, bins.end):
        x = _x(bins, bins.place(time))
        foot = HEIGHT - _BOTTOM
        line = node("line", class_="grid", x1=x, x2=x, y1=foot, y2=foot + 4)
        append(drawing, line, node("text", text, class_="middle", x=x, y=foot + 18))
    return drawing


def _line(
    number: int, series: Series, bins: Bins, scale: Scale, format_: Format
) -> Iterable[Element]:
    points = [
        None if value is None else (_x(bins, n + 0.5), _y(scale, value))
        for n, value in enumerate(series.values)
    ]
    for is_gap, run in groupby(points, key=lambda point: point is None):
        if not is_gap:
            # A single point between gaps is drawn as a line of length 0; its round caps show a dot.
            places = [f"{x:.1f},{y:.1f}" for x, y in filter(None, run)]
            path = "M" + " L".join(places if len(places) > 1 else places * 2)
            yield node("path", d=path, class_=f"line s{number}")
    for n, (point, value) in enumerate(zip(points, series.values, strict=True)):
        if point is not None and value is not None:
            text = f"{series.name}, {format_time(bins.time(n))}: {format_(value)}"
            yield node("circle", node("title", text), class_="hit", cx=point[0], cy=point[1], r=5)


def _marks(marks: Iterable[Mark], bins: Bins) -> Iterable[Element]:
    for mark in marks:
        x = _x(bins, bins.place(mark.time))
        foot = HEIGHT - _BOTTOM
        yield node(
            "g",
            node("title", f"{format_time(mark.time)}: {mark.text}"),
            node("line", x1=x, x2=x, y1=_TOP, y2=foot),
            node("path", d=f"M{x - 5:.1f},{_TOP - 9} L{x + 5:.1f},{_TOP - 9} L{x:.1f},{_TOP} Z"),
            class_="mark",
        )


def _x(bins: Bins, index: float) -> float:
    return _LEFT + _PLOT_WIDTH * index / bins.count


def _y(scale: Scale, value: float) -> float:
    return _TOP + _PLOT_HEIGHT * (1 - scale.place(value))
