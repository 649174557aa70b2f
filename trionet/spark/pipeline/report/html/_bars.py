"""Draws stacked bars, one per row, that break a duration down into its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element

import attrs

from ._charts import WIDTH, Format, figure
from ._markup import append, node

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
            nodes.append(
                node(
                    "rect",
                    node("title", text),
                    class_=f"f{number}",
                    x=left,
                    y=top,
                    width=width,
                    height=_BAR,
                )
            )
            left += width
    nodes.append(node("text", format_(whole), x=_LABELS + _BAR_WIDTH + 8, y=middle))
    return nodes
