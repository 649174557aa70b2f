"""Draws SVG charts: lines, stacked columns and heatmaps over time, and bars of a duration's parts.

The charts need no script. Lines and columns have a legend, and each data point a native tooltip.
The colours come from the page's style, which has a light and a dark scheme.

HTML and SVG are built with the standard library's elements, which escape all text: strings supplied
by clients are added only as text or attribute values of these elements, never as markup.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, takewhile
from typing import Final, TypeAlias
from xml.etree.ElementTree import Element, tostring

import attrs

from ._figures import DAY, ROUND_TIMES, Bins, Heat
from ._inputs import format_time
from ._sections import rounded

Child: TypeAlias = "Element | str"

#: The number of decimal places in a drawing; the unit is about a pixel.
_DIGITS: Final = 1


def node(tag: str, *children: Child, **attributes: str | float) -> Element:
    """Create an element.

    Args:
        tag: the name of the element.
        children: the child elements and texts.
        attributes: the attributes; a trailing underscore in a name is removed, other underscores
            become dashes.
    """
    element = Element(tag)
    for name, value in attributes.items():
        text = value if isinstance(value, str) else number(value)
        element.set(name.rstrip("_").replace("_", "-"), text)
    append(element, *children)
    return element


def append(parent: Element, *children: Child) -> None:
    """Append children (elements or text) to an element."""
    for child in children:
        if not isinstance(child, str):
            parent.append(child)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + child
        else:
            parent.text = (parent.text or "") + child


def number(value: float) -> str:
    """Format a coordinate as briefly as possible."""
    return f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def page(root: Element) -> str:
    """Serialize a page, with its doctype."""
    return f"<!doctype html>\n{tostring(root, encoding='unicode', method='html')}\n"


#: The maximum number of ticks on an axis; round steps may yield about half as many.
_TICKS: Final = 6
_TIME_TICKS: Final = 9


@attrs.frozen
class Linear:
    """An axis from zero to a round number that no value exceeds."""

    top: float
    step: float

    @classmethod
    def over(cls, largest: float, step_min: float = 0.0) -> Linear:
        """Return the axis for values up to ``largest``, with steps of at least ``step_min``."""
        step = max(_round_up((largest or 1.0) / _TICKS), step_min)
        return cls(step * math.ceil((largest or 1.0) / step - 1e-9), step)

    def place(self, value: float) -> float:
        return value / self.top

    def ticks(self) -> list[float]:
        return [self.step * n for n in range(round(self.top / self.step) + 1)]


@attrs.frozen
class Logarithmic:
    """A logarithmic axis between two powers of ten, at least 1, that enclose all values."""

    low: int
    high: int

    @classmethod
    def over(cls, smallest: float, largest: float) -> Logarithmic:
        low = math.floor(math.log10(max(1.0, smallest)) + 1e-9)
        high = math.ceil(math.log10(max(1.0, largest)) - 1e-9)
        return cls(low, max(high, low + 1))

    def place(self, value: float) -> float:
        exponent = math.log10(max(1.0, value))
        return max(0.0, (exponent - self.low) / (self.high - self.low))

    def ticks(self) -> list[float]:
        return [10.0**exponent for exponent in range(self.low, self.high + 1)]


Scale: TypeAlias = Linear | Logarithmic


def _round_up(value: float) -> float:
    """Round up to the next of 1, 2, 5, 10, 20, ..., or of 0.1, 0.2, 0.5, ..."""
    base = 10.0 ** math.floor(math.log10(value))
    return next(base * each for each in (1, 2, 5, 10) if base * each >= value * (1 - 1e-9))


def time_ticks(start: datetime, end: datetime) -> list[tuple[datetime, str]]:
    """Return the ticks for a range: round times, with their labels.

    The first label and the labels at midnight include the day, so that all labels are unambiguous.
    """
    seconds = (end - start).total_seconds()
    step = next((each for each in ROUND_TIMES if seconds / each <= _TIME_TICKS), ROUND_TIMES[-1])
    first = math.ceil(start.timestamp() / step) * step
    times = takewhile(lambda time: time <= end, _times(first, step))
    return [(time, _label(time, step, is_first=not n)) for n, time in enumerate(times)]


def _times(first: float, step: float) -> Iterator[datetime]:
    time = datetime.fromtimestamp(first, UTC)
    while True:
        yield time
        time += timedelta(seconds=step)


def _label(time: datetime, step: float, *, is_first: bool) -> str:
    if step >= DAY:
        return time.strftime("%Y-%m-%d" if is_first or time.timetuple().tm_yday == 1 else "%m-%d")
    is_midnight = time.hour == time.minute == 0
    return time.strftime("%m-%d %H:%M" if is_first or is_midnight else "%H:%M")


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
    """Draw a column per bin, with the values of all series, which are counts, stacked."""
    sums = [sum(each.values[n] or 0 for each in series) for n in range(bins.count)]
    scale = Linear.over(max(sums, default=0), step_min=1)
    drawing = _frame(title, bins, scale, format_)
    gap = 1 if _PLOT_WIDTH / bins.count > 4 else 0
    for n in range(bins.count):
        base = 0.0
        for number, each in enumerate(series):
            value = each.values[n] or 0
            if value:
                tip = f"{each.name}, {format_time(bins.time(n))}: {format_(value)}"
                place = _place(bins, scale, n, base, base + value, gap)
                drawing.append(node("rect", node("title", tip), class_=f"f{number}", **place))
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
        between = f"{format_(cell.low)} to {format_(cell.high)}"
        tip = f"{format_time(bins.time(cell.bin))}, {between}: {cell.requests:,.0f}"
        place = _place(bins, scale, cell.bin, cell.low, cell.high)
        place["height"] = max(place["height"], 0.5)
        shade = f"{step / _HEAT_STEPS:.2f}"
        drawing.append(node("rect", node("title", tip), class_="heat", opacity=shade, **place))
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


def _place(
    bins: Bins, scale: Scale, index: int, low: float, high: float, gap: float = 0.0
) -> dict[str, float]:
    """Return the rectangle of a bin between two values, with a gap before the next bin."""
    left, top = _x(bins, index), _y(scale, high)
    width = max(_x(bins, index + 1) - left - gap, 0.5)
    return {"x": left, "y": top, "width": width, "height": _y(scale, low) - top}


def _x(bins: Bins, index: float) -> float:
    return _LEFT + _PLOT_WIDTH * index / bins.count


def _y(scale: Scale, value: float) -> float:
    return _TOP + _PLOT_HEIGHT * (1 - scale.place(value))


_LABELS: Final = 210
_VALUES: Final = 90
_ROW: Final = 26
_BAR: Final = 18
_BAR_WIDTH: Final = WIDTH - _LABELS - _VALUES


@attrs.frozen
class Bar:
    """A bar with its label, and its parts in the order of the legend."""

    label: str
    parts: Sequence[float]

    @property
    def whole(self) -> float:
        return sum(self.parts)


def stacked_bars(title: str, bars: Sequence[Bar], names: Sequence[str], format_: Format) -> Element:
    """Draw bars of equal length, divided in proportion to their parts; label each with its sum."""
    drawing = node(
        "svg",
        viewBox=f"0 0 {WIDTH} {_ROW * len(bars)}",
        role="img",
        **{"aria-label": title},
    )
    for row, bar in enumerate(bars):
        append(drawing, *_bar(row, bar, names, format_))
    return figure(title, drawing, names)


def _bar(row: int, bar: Bar, names: Sequence[str], format_: Format) -> Sequence[Element]:
    top, whole = row * _ROW, bar.whole
    middle = top + _BAR - 4
    nodes = [node("text", bar.label, class_="end", x=_LABELS - 8, y=middle)]
    left = float(_LABELS)
    for number, (name, part) in enumerate(zip(names, bar.parts, strict=True)):
        if part > 0:
            width = _BAR_WIDTH * part / whole
            text = f"{bar.label}, {name}: {format_(part)} ({part / whole:.1%})"
            tip = node("title", text)
            nodes.append(
                node("rect", tip, class_=f"f{number}", x=left, y=top, width=width, height=_BAR)
            )
            left += width
    nodes.append(node("text", format_(whole), x=_LABELS + _BAR_WIDTH + 8, y=middle))
    return nodes
