"""Text and small charts of an exact width in terminal cells, and the pen with which views draw.

Text from external sources passes through :func:`sanitized` first. An escape sequence in a client id
must not reach the terminal, and a newline must not break a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs
from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style

from ..._util._text import printable
from . import _palette as palette

#: The ASCII replacements for the other characters in the dashboard's own texts.
_IN_ASCII: Final = str.maketrans({"µ": "u", "…": "~"})
#: The maximum number of characters of a text to examine, more than any screen is wide.
CHARS_MAX: Final = 600
#: The same for a text that is wrapped, which may be as long as a page.
WRAPPED_CHARS_MAX: Final = 6_000


@attrs.frozen
class Glyphs:
    """The characters for drawing, by default Unicode.

    Attributes:
        is_ascii: whether only ASCII can be shown.
        is_fine: whether charts have colour gradients and labels, which need 24-bit colour.
        has_dots: whether graphs consist of braille dots, which not all fonts of browsers have.
        ramp: the heights of a sparkline, the lowest first.
        shades: the densities of a heat strip, the lightest first.
        parts: the characters of the segments of a stacked bar, in order.
        full: a full cell of a bar.
        rest: an empty cell of a bar.
        ellipsis: marks truncated text.
        rising: marks the ascending sort column.
        falling: marks the descending sort column.
        into: the separator between the titles of stacked views.
        rule: a horizontal line.
        dot: the separator between words.
        wall: a vertical line.
        fork: where a branch leaves a vertical line that goes on.
        end: where the last branch leaves a vertical line.
        lamp: marks a state, by its colour.
    """

    is_ascii: bool = False
    is_fine: bool = False
    has_dots: bool = False
    ramp: str = "▁▂▃▄▅▆▇█"
    shades: str = " ░▒▓█"
    parts: str = "█▓▒░▞▚"
    full: str = "█"
    rest: str = "░"
    ellipsis: str = "…"
    rising: str = "▲"
    falling: str = "▼"
    into: str = "→"
    rule: str = "─"
    dot: str = "·"
    wall: str = "│"
    fork: str = "├"
    end: str = "└"
    lamp: str = "●"


UNICODE: Final = Glyphs()
FINE: Final = Glyphs(is_fine=True, has_dots=True)
#: For pictures.
PICTURE: Final = Glyphs(is_fine=True)
ASCII: Final = Glyphs(
    is_ascii=True,
    ramp="_.:-=+*#",
    shades=" .:*#",
    parts="#=+-~%",
    full="#",
    rest=".",
    ellipsis="~",
    rising="^",
    falling="v",
    into=">",
    rule="-",
    dot="|",
    wall="|",
    fork="+",
    end="`",
    lamp="*",
)


def sanitized(text: str, glyphs: Glyphs = UNICODE, chars_max: int = CHARS_MAX) -> str:
    """Escape all characters that a terminal might interpret, hide or reorder.

    C0, C1, bidirectional and invisible characters become escapes, and a backslash is doubled.
    If only ASCII can be shown, all other characters become escapes, too.
    """
    if len(text) > chars_max:
        text = text[:chars_max] + glyphs.ellipsis
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    shown = printable(text)
    if glyphs.is_ascii:
        shown = shown.translate(_IN_ASCII).encode("ascii", "backslashreplace").decode("ascii")
    return shown


def fit(text: str, width: int, *, right: bool = False, glyphs: Glyphs = UNICODE) -> str:
    """Pad sanitized text to exactly ``width`` cells, or truncate it with an ellipsis.

    Args:
        text: sanitized text.
        width: the width in cells.
        right: whether to align the text to the right.
        glyphs: provides the ellipsis.
    """
    if width <= 0:
        return ""
    length = len(text) if text.isascii() else cell_len(text)
    if length > width:
        cut = set_cell_size(text, width - 1)
        # A character of two cells may have been cut in half, which leaves a blank.
        return cut + glyphs.ellipsis
    blanks = " " * (width - length)
    return blanks + text if right else text + blanks


def fit_sanitized(text: str, width: int, *, right: bool = False, glyphs: Glyphs = UNICODE) -> str:
    """Sanitize a text and fit it into exactly ``width`` cells."""
    # The fast path for most texts, of which a frame has hundreds.
    if len(text) <= width and text.isascii() and text.isprintable() and "\\" not in text:
        return text.rjust(width) if right else text.ljust(width)
    return fit(sanitized(text, glyphs), width, right=right, glyphs=glyphs)


def wrapped(text: str, width: int, glyphs: Glyphs = UNICODE) -> list[str]:
    """Sanitize and wrap a text, at spaces if possible, keeping line breaks.

    Args:
        text: the text, which need not be sanitized.
        width: the width of the lines in cells.
        glyphs: the characters for drawing.
    """
    lines: list[str] = []
    for line in text.expandtabs().splitlines() or [""]:
        lines += _broken(sanitized(line, glyphs, WRAPPED_CHARS_MAX), max(2, width))
    return lines


def _broken(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    lines, current = [], ""
    for word in line.split(" "):
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        *whole, current = chop_cells(word, width) or [""]
        lines += whole
    return [*lines, current]


def _step(value: float, top: float, steps: int) -> int:
    if value <= 0 or top <= 0:
        return 0
    # Anything above zero is visible.
    return max(1, min(steps, round(value / top * steps)))


def bar(fraction: float, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Draw a bar with the given fraction (0 to 1) filled."""
    filled = round(max(0.0, min(1.0, fraction)) * width)
    if filled == 0 and fraction > 0 and width > 0:
        filled = 1
    return glyphs.full * filled + glyphs.rest * (width - filled)


def shares(parts: Sequence[float], width: int) -> list[int]:
    """Distribute ``width`` cells among the parts of a stacked bar.

    Uses the largest remainder method, so that rounding does not change the length of the bar. If
    all parts are zero, no cells are distributed.
    """
    parts = [max(0.0, part) for part in parts]
    total = sum(parts)
    if total <= 0 or width <= 0:
        return [0] * len(parts)
    exact = [part / total * width for part in parts]
    cells = [int(each) for each in exact]
    order = sorted(range(len(parts)), key=lambda index: cells[index] - exact[index])
    for index in order[: width - sum(cells)]:
        cells[index] += 1
    return cells


def heat(values: Iterable[float], top: float, glyphs: Glyphs = UNICODE) -> str:
    """Draw one cell per value; the larger the value, up to ``top``, the denser the cell."""
    steps = len(glyphs.shades) - 1
    return "".join(glyphs.shades[_step(value, top, steps) if value > 0 else 0] for value in values)


Line = list[Segment]
"""A line of the screen; it may be shorter than the screen is wide."""


@attrs.frozen
class Frame:
    """The lines of a full screen.

    Attributes:
        width: the width of every line, in cells.
        lines: the lines from top to bottom.
    """

    width: int
    lines: list[Line]


@attrs.frozen
class Pen:
    """The size and the characters for drawing a view.

    Attributes:
        width: the width of the screen, in cells.
        height: the number of lines for the view; a view of lines scrolls if it returns more.
        glyphs: the characters for drawing.
    """

    width: int
    height: int
    glyphs: Glyphs

    def text(self, text: object, style: Style = palette.PLAIN) -> Segment:
        """Return a segment with sanitized text."""
        return Segment(sanitized(str(text), self.glyphs), style)

    def cell(
        self, text: object, width: int, style: Style = palette.PLAIN, *, right: bool = False
    ) -> Segment:
        """Return a segment of exactly ``width`` cells with sanitized text."""
        return Segment(fit_sanitized(str(text), width, right=right, glyphs=self.glyphs), style)

    def label(self, text: object, width: int, style: Style = palette.PLAIN) -> Segment:
        """Return a segment of exactly ``width`` cells with the sanitized name of what follows.

        At least the last cell is blank, however long the name is.
        """
        name = fit_sanitized(str(text), max(0, width - 1), glyphs=self.glyphs)
        return Segment(name + " " * min(1, width), style)

    def sentences(self, text: str, style: Style = palette.PLAIN) -> list[Line]:
        """Sanitize and wrap a text, indented by a cell."""
        lines = wrapped(text, self.width - 2, self.glyphs)
        return [[Segment(f" {line}", style)] for line in lines]

    def phrases(self, phrases: Iterable[str], style: Style = palette.DIM) -> list[Line]:
        """Draw short texts after each other, on as many lines as they need, without cutting any.

        Only one that is wider than the screen is cut.
        """
        lines: list[str] = []
        for phrase in phrases:
            shown = sanitized(phrase, self.glyphs)
            longer = f"{lines[-1]}  {shown}" if lines else shown
            if lines and cell_len(longer) < self.width:
                lines[-1] = longer
            else:
                lines.append(shown)
        return [[Segment(f" {line}", style)] for line in lines]

    def rule(self, title: str, aside: str = "") -> Line:
        """Draw a sanitized heading, followed by a rule up to the right edge of the screen.

        Args:
            title: the heading.
            aside: a text near the right edge, such as the time that charts below cover; left out
                where it does not fit.
        """
        shown = sanitized(title, self.glyphs)
        cells = cell_len(shown)
        if cells > self.width - 4:
            cells = max(0, self.width - 4)
            shown = fit(shown, cells, glyphs=self.glyphs)
        rest = max(0, self.width - cells - 4)
        line = [
            Segment(self.glyphs.rule * 2, palette.RULE),
            Segment(f" {shown} ", palette.TITLE),
        ]
        before_aside = rest - len(aside) - 4
        if not aside or before_aside < 1:
            return [*line, Segment(self.glyphs.rule * rest, palette.RULE)]
        return [
            *line,
            Segment(self.glyphs.rule * before_aside, palette.RULE),
            Segment(f" {aside} ", palette.DIM),
            Segment(self.glyphs.rule * 2, palette.RULE),
        ]
