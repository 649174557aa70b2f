"""What the roles of the palette look like, by the terminal's colours and its background.

The problem: a text style that is legible on black is not on white (yellow on white has a contrast
of 1.3 : 1), its background is known only when the terminal has responded, and frames are drawn
before that. The choice: frames contain roles, and a theme is applied to each role once, where
frames are encoded. Changing it redraws the screen, and drawing does not know about it. Refused:
colours as parameters of every drawing function, for the same result.

Every text style has a contrast of at least 4.5 : 1 on the usual backgrounds of its theme, also when
it is reduced to 256 colours. Of the 16 basic colours, whose shades each terminal chooses, a theme
uses those with enough contrast in xterm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import attrs
from rich.color import Color, ColorSystem
from rich.style import Style

from . import _palette as palette
from ._cells import Frame, Line

Rgb = tuple[int, int, int]


class Theme:
    """The styles of all roles.

    Args:
        name: ``dark`` or ``light``.
        styles: the styles, keyed by role; a role without an entry is shown as it is.
    """

    def __init__(self, name: str, styles: Mapping[Style, Style]) -> None:
        self.name = name
        self._styles = styles

    def style(self, role: Style) -> Style:
        """Return what a role looks like."""
        return self._styles.get(role, role)

    def applied(self, frame: Frame) -> Frame:
        """Return a frame in which styles have replaced the roles."""
        return Frame(frame.width, [_applied(line, self) for line in frame.lines])


def _applied(line: Line, theme: Theme) -> Line:
    return [
        segment if segment.style is None else segment._replace(style=theme.style(segment.style))
        for segment in line
    ]


@attrs.frozen
class Look:
    """The backgrounds and colours of a theme.

    Attributes:
        background: that of exported pictures.
        foreground: the colour of plain text in exported pictures.
        backgrounds: the usual backgrounds of terminals, on which texts must be legible.
        texts: the colour of each role that has only one.
        ansi: its number among the 16 basic colours; None for the terminal's text colour.
        blocks: the text and background colour of each role that has both.
        on_bar: the colours of texts, and of lines that are not text, in the selected row.
        parts: the colours of the segments of a stacked bar.
        labels: the backgrounds of the labels inside of the segments.
        label_text: the colour of the labels.
        ramp: the colours between which a chart's values are placed, from the lowest.
        rule: the colour of lines, which are not text.
    """

    background: str
    foreground: str
    backgrounds: tuple[str, ...]
    texts: Mapping[Style, str]
    ansi: Mapping[Style, int | None]
    blocks: Mapping[Style, tuple[str, str]]
    on_bar: Mapping[Style, str]
    parts: tuple[str, ...]
    labels: tuple[str, ...]
    label_text: str
    ansi_parts: tuple[int | None, ...]
    ramp: tuple[str, ...]
    rule: str


LOOKS: Final[Mapping[str, Look]] = {
    "dark": Look(
        background="#16181d",
        foreground="#dee2e6",
        # Black, and the usual dark greys up to the lightest of the well-known themes.
        backgrounds=("#000000", "#16181d", "#1e1e2e", "#282c34", "#2e3440"),
        texts={
            palette.DIM: "#a3abb8",
            palette.TITLE: "#7cc7ff",
            palette.KEY: "#ffb454",
            palette.GOOD: "#4fd6a0",
            palette.NOTE: "#f0e442",
            palette.ALARM: "#ff9b7d",
            palette.CHART: "#56b4e9",
        },
        ansi={
            palette.TITLE: 6,
            palette.KEY: 3,
            palette.GOOD: 2,
            palette.NOTE: 3,
            palette.ALARM: 9,
            palette.CHART: 6,
        },
        blocks={
            palette.HEADING: ("#c9d1dc", "#222b38"),
            palette.SORTED: ("#7cc7ff", "#222b38"),
            palette.BAR: ("#e6ebf2", "#2a3648"),
            palette.BAR_GOOD: ("#5fe0ac", "#2a3648"),
            palette.BAR_ALARM: ("#ffb09a", "#2a3648"),
            palette.CURSOR: ("#ffffff", "#2a527f"),
            palette.TAB: ("#0b1622", "#7cc7ff"),
        },
        on_bar={
            palette.GOOD: "#5fe0ac",
            palette.NOTE: "#f0e442",
            palette.ALARM: "#ffb8a3",
            palette.RULE: "#8fa3bd",
        },
        parts=("#e69f00", "#56b4e9", "#3dcfa2", "#f0e442", "#93b4ff", "#e29ac0"),
        # Deeper than the parts: large areas of bright colour would outshine all text around them.
        labels=("#8a5a00", "#0a68a8", "#00694d", "#6b6200", "#3f55b8", "#94357a"),
        label_text="#f4f7fa",
        ansi_parts=(3, 6, 2, 11, 14, 13),
        ramp=("#4aa8ff", "#3cc8e0", "#4fdcb4", "#a5ec9a"),
        rule="#4a5568",
    ),
    "light": Look(
        background="#ffffff",
        foreground="#1f2933",
        backgrounds=("#ffffff", "#fdf6e3", "#eff1f5"),
        texts={
            palette.DIM: "#59616e",
            palette.TITLE: "#0a5fae",
            palette.KEY: "#865400",
            palette.GOOD: "#00664a",
            palette.NOTE: "#6b5500",
            palette.ALARM: "#b02a00",
            palette.CHART: "#0a5fae",
        },
        # Green, yellow and cyan cannot be read on white, so that words and marks must do.
        ansi={
            palette.TITLE: 4,
            palette.KEY: 5,
            palette.GOOD: None,
            palette.NOTE: 5,
            palette.ALARM: 1,
            palette.CHART: 4,
        },
        blocks={
            palette.HEADING: ("#333c48", "#e6ebf2"),
            palette.SORTED: ("#0a5aa6", "#e6ebf2"),
            palette.BAR: ("#1c2733", "#d5dfeb"),
            palette.BAR_GOOD: ("#005a41", "#d5dfeb"),
            palette.BAR_ALARM: ("#9c2a00", "#d5dfeb"),
            palette.CURSOR: ("#0b1622", "#b5d5f7"),
            palette.TAB: ("#ffffff", "#0a5fae"),
        },
        on_bar={
            palette.GOOD: "#005a41",
            palette.NOTE: "#6b5500",
            palette.ALARM: "#9c2a00",
            palette.RULE: "#6f86a3",
        },
        parts=("#8a5a00", "#0a68a8", "#00694d", "#6b6200", "#2f4fc0", "#94357a"),
        labels=("#8a5a00", "#0a68a8", "#00694d", "#6b6200", "#2f4fc0", "#94357a"),
        label_text="#ffffff",
        ansi_parts=(1, 4, None, 5, 4, 5),
        ramp=("#1d63b8", "#0f668a", "#0a6b5c", "#2f6b2a"),
        rule="#b6bfcb",
    ),
}
DARK: Final = "dark"
LIGHT: Final = "light"
THEMES: Final = tuple(LOOKS)


@cache
def theme(name: str, colors: ColorSystem | None) -> Theme:
    """Return a theme.

    Args:
        name: one of :data:`THEMES`.
        colors: the colours of the terminal; None for none, where only attributes such as bold
            distinguish roles.
    """
    look = LOOKS[name]
    if colors is None:
        return Theme(name, {})
    if colors in {ColorSystem.STANDARD, ColorSystem.WINDOWS}:
        return Theme(name, _reversed_blocks(_basic(look)))
    styles = {role: _text(role, color) for role, color in look.texts.items()}
    styles |= zip(palette.PARTS, map(_colored, look.parts), strict=True)
    if colors is not ColorSystem.TRUECOLOR:
        return Theme(name, _reversed_blocks(styles))
    styles |= {role: _block(role, *pair) for role, pair in look.blocks.items()}
    styles |= zip(
        palette.LABELS,
        (Style(color=look.label_text, bgcolor=label) for label in look.labels),
        strict=True,
    )
    styles |= zip(palette.RAMP, map(_colored, _between(look.ramp, len(palette.RAMP))), strict=True)
    styles[palette.RULE] = _colored(look.rule)
    bar = look.blocks[palette.CURSOR][1]
    for role, on_bar in palette.TEXTS_ON_BAR.items():
        styles[on_bar] = _block(on_bar, look.on_bar[role], bar)
    for role, on_bar in palette.CHARTS_ON_BAR.items():
        color = Style(color=look.on_bar[role]) if role in look.on_bar else styles[role]
        styles[on_bar] = color + Style(bgcolor=bar)
    return Theme(name, styles)


def _basic(look: Look) -> dict[Style, Style]:
    """Return the styles of a terminal with 16 colours."""
    numbers = [*look.ansi.items(), *zip(palette.PARTS, look.ansi_parts, strict=True)]
    return {
        role: Style(bold=role.bold, color=None if number is None else Color.from_ansi(number))
        for role, number in numbers
    }


#: The role of which each block takes its colour where blocks are reversed text.
_COLORS_OF_BLOCKS: Final = {
    palette.SORTED: palette.TITLE,
    palette.TAB: palette.TITLE,
    palette.BAR_GOOD: palette.GOOD,
    palette.BAR_ALARM: palette.ALARM,
}


def _reversed_blocks(styles: dict[Style, Style]) -> dict[Style, Style]:
    """Add the styles of blocks in a terminal without the shades that backgrounds need."""
    for role, other in _COLORS_OF_BLOCKS.items():
        styles[role] = Style(
            color=styles[other].color,
            bold=role.bold,
            underline=role.underline,
            reverse=role.reverse,
        )
    styles[palette.RULE] = palette.DIM
    charts = palette.CHARTS_ON_BAR.items()
    return {**styles, **{on_bar: styles[role] for role, on_bar in charts if role in styles}}


def _colored(color: str) -> Style:
    return Style(color=color)


def _text(role: Style, color: str) -> Style:
    # Instead of dimmed text, whose shade is the terminal's, there is a shade of known contrast.
    return Style(color=color, bold=role.bold)


def _block(role: Style, color: str, background: str) -> Style:
    return Style(color=color, bgcolor=background, bold=role.bold)


def _between(stops: tuple[str, ...], count: int) -> Iterable[str]:
    """Return ``count`` colours, evenly spaced along a line through the given colours."""
    points = [rgb(stop) for stop in stops]
    for index in range(count):
        at = index * (len(points) - 1) / (count - 1)
        low = min(int(at), len(points) - 2)
        pairs = zip(points[low], points[low + 1], strict=True)
        mixed = (round(a + (b - a) * (at - low)) for a, b in pairs)
        yield "#" + "".join(f"{each:02x}" for each in mixed)


def rgb(color: str) -> Rgb:
    """Return the red, green and blue of a colour such as ``#56b4e9``, from 0 to 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def luminance(color: Rgb) -> float:
    """Return how bright a colour looks, from 0 to 1, as WCAG 2 defines it."""
    red, green, blue = (_linear(each / 255) for each in color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def is_light(background: Rgb) -> bool:
    """Return whether dark text has more contrast on a background than light text."""
    # The luminance at which black and white have the same contrast.
    return luminance(background) > 0.179
