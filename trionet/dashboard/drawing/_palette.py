"""The roles of text and charts, each with a style of its own.

Views draw with roles. What a role looks like depends on the terminal and on its background, which
is known only after the first frame; see :mod:`._themes`. The styles here are what terminals without
24-bit colour show on a dark background, and double as the names of the roles, so that all must
differ.

The colours are from Okabe and Ito's palette for colour-blind readers. Colour is never the only
distinction: each phase has a separate glyph or a label, and problems are marked with ``!``.
"""

from __future__ import annotations

from typing import Final

from rich.style import Style

ORANGE: Final = "#e69f00"
SKY_BLUE: Final = "#56b4e9"
GREEN: Final = "#009e73"
YELLOW: Final = "#f0e442"
BLUE: Final = "#0072b2"
VERMILLION: Final = "#d55e00"
PURPLE: Final = "#cc79a7"

PLAIN: Final = Style()
BOLD: Final = Style(bold=True)
DIM: Final = Style(dim=True)
TITLE: Final = Style(bold=True, color=SKY_BLUE)
#: The titles of a table's columns, and of the column that it is sorted by.
HEADING: Final = Style(bold=True, underline=True)
SORTED: Final = Style(bold=True, underline=True, color=SKY_BLUE)
#: The header, and what is as important, such as the cursor in typed text.
BAR: Final = Style(reverse=True)
#: The state in the header: up to date, or not.
BAR_GOOD: Final = Style(reverse=True, bold=True, color=GREEN)
BAR_ALARM: Final = Style(reverse=True, bold=True, color=VERMILLION)
#: The selected row.
CURSOR: Final = Style(reverse=True, bold=True)
#: The tab of the view on the screen.
TAB: Final = Style(reverse=True, bold=True, color=SKY_BLUE)
KEY: Final = Style(bold=True, color=ORANGE)
GOOD: Final = Style(color=GREEN)
NOTE: Final = Style(color=YELLOW)
ALARM: Final = Style(bold=True, color=VERMILLION)
CHART: Final = Style(color=SKY_BLUE)

#: The styles of the segments of a stacked bar, in order.
PARTS: Final = tuple(
    Style(color=color, meta={"part": color})
    for color in (ORANGE, SKY_BLUE, GREEN, YELLOW, BLUE, PURPLE)
)
#: The styles of the labels inside of the segments of a stacked bar, in order.
LABELS: Final = tuple(Style(reverse=True, color=part.color, meta=part.meta) for part in PARTS)
#: The styles of a chart's values, from the lowest to the highest. Only used with 24-bit colour.
RAMP: Final = tuple(Style(color=SKY_BLUE, meta={"level": level}) for level in range(8))
#: Lines between blocks, and the empty part of a bar. Not for text.
RULE: Final = Style(dim=True, color=SKY_BLUE)


def _on_bar(style: Style, role: Style) -> Style:
    """Return the style of a role in the selected row, which equals no other style."""
    return style + Style(meta={"on_bar": str(role)})


#: The styles of coloured texts in the selected row; all others have :data:`CURSOR`. Without 24-bit
#: colour these look like it, too: reversed colours of some words of a line are hard to read.
TEXTS_ON_BAR: Final = {role: _on_bar(CURSOR, role) for role in (GOOD, NOTE, ALARM)}
#: The styles of charts in the selected row. They are never reversed, or bars would be gaps.
CHARTS_ON_BAR: Final = {
    role: _on_bar(role, role) for role in (CHART, RULE, GOOD, NOTE, ALARM, *PARTS, *RAMP)
}
