"""Charts as lines: trends, graphs of several lines, meters and stacked bars.

Graphs consist of braille dots, two values and four heights in a cell, or of blocks. Where the pen's
glyphs are fine, they get their colours from a ramp.
"""

from __future__ import annotations

from codecs import charmap_decode
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import Final

from rich.segment import Segment
from rich.style import Style

from . import _palette as palette
from . import _units as units
from ._cells import Line, Pen, bar, heat, shares

#: The dots of the left and the right half of a cell, filled from the bottom to a height of 0 to 4.
_LEFT: Final = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT: Final = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
#: The character of a cell, indexed by five times the height on the left plus that on the right.
_DOTS: Final = "".join(chr(0x2800 + left + right) for left in _LEFT for right in _RIGHT).replace(
    chr(0x2800), " "
)
_DOT_HEIGHTS: Final = 4
_RAMP_MAX: Final = len(palette.RAMP) - 1
#: The step of the ramp for each height of a block, and for each index of a cell of dots.
_BLOCK_STEPS: Final = bytes(max(0, min(height, _RAMP_MAX + 1) - 1) for height in range(256))
_STEPS: Final = bytes(
    max(0, max(divmod(min(cell, 24), 5)) - 1) * _RAMP_MAX // (_DOT_HEIGHTS - 1)
    for cell in range(256)
)


def samples(width: int, pen: Pen) -> int:
    """Return how many values a graph of this width shows, to ask a history for no more."""
    return 2 * width if pen.glyphs.has_dots else width


def trend(
    values: Iterable[float | None], width: int, pen: Pen, style: Style = palette.CHART
) -> Line:
    """Draw the newest values in one line; see :func:`graph`."""
    return graph(values, width, 1, pen, style)[0]


def graph(
    values: Iterable[float | None],
    width: int,
    height: int,
    pen: Pen,
    style: Style = palette.CHART,
) -> list[Line]:
    """Draw the newest values as an area, relative to the largest value, the newest at the right.

    None is drawn as a gap, zero has the lowest height, and anything above zero is higher.

    Args:
        values: the values in chronological order.
        width: the width in cells, which is :func:`samples` values.
        height: the number of lines.
        pen: the pen for drawing.
        style: the style; with that of charts, fine graphs are coloured by height.
    """
    if width <= 0:
        return [[] for _ in range(height)]
    has_dots = pen.glyphs.has_dots
    per_line = _DOT_HEIGHTS if has_dots else len(pen.glyphs.ramp)
    count = samples(width, pen)
    shown = list(values)[-count:]
    # Of several lines, the uppermost has a margin: below it may be another graph.
    most = height * per_line - (height > 1)
    heights = bytes(count - len(shown)) + _heights(shown, most)
    lines: list[Line] = []
    for line in range(height - 1, -1, -1):
        part = heights.translate(_clipping(line * per_line, per_line))
        cells = _cells(part) if has_dots else part
        text = charmap_decode(cells, "strict", _DOTS if has_dots else f" {pen.glyphs.ramp}")[0]
        if style is not palette.CHART or not pen.glyphs.is_fine:
            lines.append([Segment(text, style)])
        elif height > 1:
            lines.append([Segment(text, palette.RAMP[line * _RAMP_MAX // (height - 1)])])
        else:
            lines.append(_by_height(text, cells.translate(_STEPS if has_dots else _BLOCK_STEPS)))
    return lines


def time_axis(seconds: float, count: int, width: int, pen: Pen) -> Segment:
    """Return the line below a graph that says when its oldest and its newest value were read.

    Args:
        seconds: the time between both, in seconds.
        count: the number of values in the graph.
        width: the width of the graph in cells; a short text is aligned to its right.
        pen: the pen for drawing.
    """
    if not seconds:
        return Segment(" " * width, palette.DIM)  # a single value
    drawn = min(width, -(-count // samples(1, pen)))
    begin, end = f"{units.duration(seconds)} ago", "now"
    between = drawn - len(begin) - len(end)
    text = f"{begin}{' ' * between}{end}" if between > 0 else f"last {units.duration(seconds)}"
    return Segment(text.rjust(width), palette.DIM)


def _heights(values: Sequence[float | None], most: int) -> bytes:
    """Return heights from 1 to ``most``, with 0 for None and 1 only for zero."""
    top = max((value for value in values if value is not None), default=0.0)
    steps = most - 1
    return bytes(
        [
            0 if value is None else 1 if value <= 0 else max(2, round(value / top * steps) + 1)
            for value in values
        ]
    )


@cache
def _clipping(begin: int, count: int) -> bytes:
    """Return a translation of heights to those within a line, from 0 to ``count``."""
    return bytes(max(0, min(each - begin, count)) for each in range(256))


def _cells(heights: bytes) -> bytes:
    """Return the index of each cell in :data:`_DOTS`."""
    left, right = (int.from_bytes(heights[half::2]) for half in (0, 1))
    # All bytes are multiplied and added at once; none of them exceeds 24.
    return (5 * left + right).to_bytes(len(heights) // 2)


def _by_height(text: str, steps: bytes) -> Line:
    """Colour each cell of a single line by its step of the ramp, in as few segments as possible."""
    line: Line = []
    at = 0
    for step, group in groupby(steps):
        end = at + sum(1 for _ in group)
        line.append(Segment(text[at:end], palette.RAMP[step]))
        at = end
    return line


def meter(fraction: float, width: int, pen: Pen, style: Style = palette.CHART) -> Line:
    """Draw a bar with the given fraction (0 to 1) filled."""
    glyphs = pen.glyphs
    if not glyphs.is_fine:
        return [Segment(bar(fraction, width, glyphs), style)]
    halves = round(max(0.0, min(1.0, fraction)) * width * 2)
    if halves == 0 and fraction > 0 and width > 0:
        halves = 1
    text = "━" * (halves // 2) + "╸" * (halves % 2)
    if not text:
        return [Segment("─" * width, palette.RULE)]
    rest = Segment("─" * (width - len(text)), palette.RULE)
    if style is not palette.CHART:
        return [Segment(text, style), rest]
    return [*_along_ramp(text, width), rest]


def _along_ramp(text: str, width: int) -> Line:
    """Colour the begin of a line of ``width`` cells by the steps of the ramp, from the left."""
    ends = [-(-width * step // len(palette.RAMP)) for step in range(len(palette.RAMP) + 1)]
    return [
        Segment(text[begin:end], role)
        for role, begin, end in zip(palette.RAMP, ends, ends[1:], strict=False)
        if text[begin:end]
    ]


def heat_strip(values: Sequence[float], top: float, pen: Pen) -> Line:
    """Draw a cell per value; the larger the value, up to ``top``, the denser the cell."""
    text = heat(values, top, pen.glyphs)
    if not pen.glyphs.is_fine or not text:
        return [Segment(text, palette.CHART)]
    steps = (min(_RAMP_MAX, int(max(0.0, each) / top * _RAMP_MAX)) for each in values)
    return [Segment(cell, palette.RAMP[step]) for cell, step in zip(text, steps, strict=True)]


def stacked_bar(parts: Sequence[float], width: int, pen: Pen, names: Sequence[str] = ()) -> Line:
    """Draw the parts of a whole side by side, each in a different colour.

    Parts differ by their glyphs, too, or by their names if glyphs are fine and names are given.

    Args:
        parts: the sizes of the parts.
        width: the width in cells.
        pen: the pen for drawing.
        names: the names of the parts, each of which is shown where it fits.
    """
    has_labels = pen.glyphs.is_fine and bool(names)
    return [
        _label(index, names[index], cells) if has_labels else _part(index, cells, pen)
        for index, cells in enumerate(shares(parts, width))
        if cells
    ]


def _label(index: int, name: str, cells: int) -> Segment:
    text = name if len(name) <= cells else _initials(name)
    shown = f"{text:^{cells}}" if len(text) <= cells else " " * cells
    return Segment(shown, palette.LABELS[index % len(palette.LABELS)])


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split())


def part_bar(index: int, cells: int, pen: Pen) -> Segment:
    """Draw a bar in the colour of a part, beside its name."""
    if pen.glyphs.is_fine:
        return Segment("▆" * cells, palette.PARTS[index % len(palette.PARTS)])
    return _part(index, cells, pen)


def _part(index: int, cells: int, pen: Pen) -> Segment:
    glyph = pen.glyphs.parts[index % len(pen.glyphs.parts)]
    return Segment(glyph * cells, palette.PARTS[index % len(palette.PARTS)])


def legend(names: Sequence[str], pen: Pen) -> Line:
    """Return a line that explains the parts of a stacked bar."""
    line: Line = [Segment(" ")]
    is_wide = 1 + sum(len(name) + 5 for name in names) <= pen.width
    for index, name in enumerate(names):
        if pen.glyphs.is_fine:
            line += [Segment(f" {name} ", palette.LABELS[index]), Segment(" ")]
        else:
            line += [_part(index, 2, pen), Segment(f" {name}  " if is_wide else f" {name} ")]
    return line
