"""Lines, frames, and the pen with which views draw."""

from __future__ import annotations

import attrs
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from . import _palette as palette
from ._cells import Glyphs, fit, fit_sanitized, sanitized

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

    def rule(self, title: str) -> Line:
        """Draw a sanitized heading, followed by a rule up to the right edge of the screen."""
        shown = sanitized(title, self.glyphs)
        cells = cell_len(shown)
        if cells > self.width - 4:
            cells = max(0, self.width - 4)
            shown = fit(shown, cells, glyphs=self.glyphs)
        rest = max(0, self.width - cells - 4)
        return [
            Segment(self.glyphs.rule * 2, palette.DIM),
            Segment(f" {shown} ", palette.TITLE),
            Segment(self.glyphs.rule * rest, palette.DIM),
        ]
