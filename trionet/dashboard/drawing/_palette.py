"""The dashboard's colours, from Okabe and Ito's palette for colour-blind readers.

Colour is never the only distinction: each phase has a separate glyph, and problems are marked with
``!``.
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
HEADING: Final = Style(bold=True, underline=True)
BAR: Final = Style(reverse=True)
CURSOR: Final = Style(reverse=True, bold=True)
KEY: Final = Style(bold=True, color=ORANGE)
GOOD: Final = Style(color=GREEN)
NOTE: Final = Style(color=YELLOW)
ALARM: Final = Style(bold=True, color=VERMILLION)
CHART: Final = Style(color=SKY_BLUE)

#: The styles of the segments of a stacked bar, in order.
PARTS: Final = tuple(
    Style(color=color) for color in (ORANGE, SKY_BLUE, GREEN, YELLOW, BLUE, PURPLE)
)
