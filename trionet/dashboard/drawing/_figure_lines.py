"""Draws figures of the model as lines with a name, a chart and the newest value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.segment import Segment

from ..model._figures import FIGURES, Unit
from . import _palette as palette
from . import _units as units
from ._cells import Line, Pen
from ._graphs import meter, samples
from ._table import chart_cells, chart_lines, exactly, margins

if TYPE_CHECKING:
    from ..model._model import Model

_SHOWN: Final[Mapping[Unit, Callable[[float | None], str]]] = {
    Unit.COUNT: units.count,
    Unit.PER_SECOND: units.per_second,
    Unit.BYTES: units.size,
    Unit.BYTES_PER_SECOND: lambda value: f"{units.size(value)}/s",
    Unit.SHARE: units.percent,
    Unit.SECONDS: units.duration,
}


#: The width of a number with its unit.
_TEXT_CELLS: Final = 8


def shown(name: str, value: float | None) -> str:
    """Format the value of a figure with its unit, or return ``-`` if it is unknown."""
    return "-" if value is None else _SHOWN[FIGURES[name].unit](value)


def charts(model: Model, names: Iterable[str], pen: Pen, height: int = 1) -> Iterator[Line]:
    """Yield ``height`` lines with a graph for each reported figure."""
    count = samples(chart_cells(pen), pen)
    for name in names:
        history = model.figures.history(name)
        if len(history):
            text, values = shown(name, history.last), history.values(count)
            yield from chart_lines(FIGURES[name].title, values, text, pen, height)


def span(model: Model, names: Iterable[str], pen: Pen) -> str:
    """Return the time that charts of these figures cover, or an empty text if there are none."""
    count = samples(chart_cells(pen), pen)
    seconds = max((model.figures.history(name).seconds(count) for name in names), default=0.0)
    return f"last {units.duration(seconds)}" if seconds else ""


def gauges(model: Model, names: Iterable[str], pen: Pen) -> Iterator[Line]:
    """Yield a line with a bar for each reported fraction."""
    for name in names:
        if len(model.figures.history(name)):
            value = model.figures.get(name)
            yield gauge(FIGURES[name].title, value, shown(name, value), pen)


def gauge(title: str, fraction: float | None, text: str, pen: Pen) -> Line:
    """Draw a name, a bar and a number, with a blank bar if the fraction is unknown."""
    label_cells, number_cells = margins(pen)
    width = chart_cells(pen)
    return [
        pen.label(f" {title}", label_cells + 1),
        *([Segment(" " * width)] if fraction is None else meter(fraction, width, pen)),
        Segment(" "),
        pen.cell(text, number_cells, palette.BOLD, right=True),
    ]


def numbers(model: Model, names: Iterable[str], pen: Pen) -> Iterator[Line]:
    """Yield lines of the names and values of figures, with several figures per line."""
    texts = []
    for name in names:
        if not len(model.figures.history(name)):
            continue
        text = shown(name, model.figures.get(name))
        if FIGURES[name].unit is not Unit.COUNT:
            # Its length changes with each read, and would move the figures to its right.
            text = text.ljust(_TEXT_CELLS)
        texts.append((FIGURES[name].title, text))
    return names_and_values(texts, pen)


def names_and_values(texts: Iterable[tuple[str, str]], pen: Pen) -> Iterator[Line]:
    """Yield lines with as many names and values as there is room for, from the margin on."""
    margin = pen.text(" ", palette.DIM)
    line, left = [margin], pen.width - 1
    for name, value in texts:
        needed = len(name) + len(value) + 4
        if needed > left and line[1:]:
            yield line
            line, left = [margin], pen.width - 1
        line += [pen.text(f"{name} ".lstrip(), palette.DIM), pen.text(f"{value}   ", palette.BOLD)]
        left -= needed
    if line[1:]:
        yield line


def request_queue(model: Model, pen: Pen) -> Iterator[Line]:
    """Draw the fill level of the request queue."""
    if not len(model.figures.history("request_queue")):
        return
    queued, most = (model.figures.get(name) for name in ("request_queue", "request_queue_max"))
    is_known = queued is not None and most
    text = f"{units.count(queued)}/{units.count(most)}" if is_known else "-"
    yield gauge("request queue", queued / most if queued is not None and most else None, text, pen)


def beside(left: Sequence[Line], right: Sequence[Line], width: int, gap: int) -> Iterator[Line]:
    """Join two blocks of lines side by side, where the left block is ``width`` cells wide."""
    for index in range(max(len(left), len(right))):
        line = left[index] if index < len(left) else []
        other = right[index] if index < len(right) else []
        yield [*exactly(line, width), Segment(" " * gap), *other]
