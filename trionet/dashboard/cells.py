"""Text and small charts of an exact width in cells of a terminal; pure.

Whatever comes from outside goes through :func:`sanitized` first: an escape in a client id must not
reach the terminal, and a newline must not break a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs
from rich.cells import cell_len, set_cell_size

from .._util.printable import printable

#: What our own texts have beside ASCII, and what stands for it without Unicode.
_IN_ASCII: Final = str.maketrans({"µ": "u", "…": "~"})
#: Longer texts are cut before they are looked at: no screen is so wide.
CHARS_MAX: Final = 600


@attrs.frozen
class Glyphs:
    """The characters that charts are made of.

    Attributes:
        is_ascii: nothing else may be shown.
        ramp: heights of a sparkline, the lowest first.
        shades: densities of a heat strip, the emptiest first.
        parts: the parts of a stacked bar, in their order.
        full: a full cell of a bar.
        rest: an empty one.
        ellipsis: where text was cut.
        rising: a column that is sorted upwards.
        falling: and downwards.
        into: between the names of views that one drilled through.
        rule: a horizontal line.
        dot: separates words.
    """

    is_ascii: bool
    ramp: str
    shades: str
    parts: str
    full: str
    rest: str
    ellipsis: str
    rising: str
    falling: str
    into: str
    rule: str
    dot: str


UNICODE: Final = Glyphs(
    is_ascii=False,
    ramp="▁▂▃▄▅▆▇█",
    shades=" ░▒▓█",
    parts="█▓▒░▞▚",
    full="█",
    rest="░",
    ellipsis="…",
    rising="▲",
    falling="▼",
    into="→",
    rule="─",
    dot="·",
)
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
)


def sanitized(text: str, glyphs: Glyphs = UNICODE) -> str:
    """The text without anything that a terminal might obey, hide or turn around.

    C0, C1, bidirectional and invisible characters become escapes, a backslash two of them; without
    Unicode everything but ASCII does, too.
    """
    if len(text) > CHARS_MAX:
        text = text[:CHARS_MAX] + glyphs.ellipsis
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    shown = printable(text)
    if glyphs.is_ascii:
        shown = shown.translate(_IN_ASCII).encode("ascii", "backslashreplace").decode("ascii")
    return shown


def fit(text: str, width: int, *, right: bool = False, glyphs: Glyphs = UNICODE) -> str:
    """The text, which is sanitized, in exactly ``width`` cells: filled up, or cut with an ellipsis.

    Args:
        text: what to show.
        width: in cells.
        right: whether it stands at the right end.
        glyphs: which ellipsis there is.
    """
    if width <= 0:
        return ""
    length = len(text) if text.isascii() else cell_len(text)
    if length > width:
        cut = set_cell_size(text, width - 1)
        # A character of two cells may have been cut in two, which leaves a blank.
        return cut + glyphs.ellipsis
    blanks = " " * (width - length)
    return blanks + text if right else text + blanks


def fit_sanitized(text: str, width: int, *, right: bool = False, glyphs: Glyphs = UNICODE) -> str:
    """Any text, made sanitized, in exactly so many cells: :func:`sanitized` and :func:`fit`."""
    # Most texts are short and plain; there are hundreds in a frame.
    if len(text) <= width and text.isascii() and text.isprintable() and "\\" not in text:
        return text.rjust(width) if right else text.ljust(width)
    return fit(sanitized(text, glyphs), width, right=right, glyphs=glyphs)


def sparkline(values: Iterable[float | None], width: int, glyphs: Glyphs = UNICODE) -> str:
    """The last values as heights, the newest at the right; the largest of them is the full height.

    What is None is a blank, and zero the lowest height.
    """
    shown = list(values)[-width:] if width > 0 else []
    top = max((value for value in shown if value is not None), default=0.0)
    steps = len(glyphs.ramp) - 1
    text = "".join(
        " " if value is None else glyphs.ramp[_step(value, top, steps)] for value in shown
    )
    return text.rjust(width)


def _step(value: float, top: float, steps: int) -> int:
    if value <= 0 or top <= 0:
        return 0
    # What is more than nothing is seen.
    return max(1, min(steps, round(value / top * steps)))


def bar(fraction: float, width: int, glyphs: Glyphs = UNICODE) -> str:
    """A bar that is filled to a share of its width, 0 to 1."""
    filled = round(max(0.0, min(1.0, fraction)) * width)
    if filled == 0 and fraction > 0 and width > 0:
        filled = 1
    return glyphs.full * filled + glyphs.rest * (width - filled)


def shares(parts: Sequence[float], width: int) -> list[int]:
    """How many cells each part of a stacked bar has; their sum is ``width`` unless all are zero.

    By largest remainder, so that the bar neither grows nor shrinks by rounding.
    """
    total = sum(parts)
    if total <= 0 or width <= 0:
        return [0] * len(parts)
    exact = [max(0.0, part) / total * width for part in parts]
    cells = [int(each) for each in exact]
    order = sorted(range(len(parts)), key=lambda index: cells[index] - exact[index])
    for index in order[: width - sum(cells)]:
        cells[index] += 1
    return cells


def columns_chart(values: Sequence[float], height: int, glyphs: Glyphs = UNICODE) -> list[str]:
    """Upright bars side by side, one cell wide; the lines from the top to the bottom."""
    top = max(values, default=0.0)
    steps = len(glyphs.ramp)
    if top <= 0:
        return [" " * len(values)] * height
    # In steps of a cell's height; what is more than nothing has one.
    heights = [0 if value <= 0 else max(1, round(value / top * height * steps)) for value in values]
    return [
        "".join(_cell_of_column(each - level * steps, glyphs) for each in heights)
        for level in reversed(range(height))
    ]


def _cell_of_column(steps: int, glyphs: Glyphs) -> str:
    if steps <= 0:
        return " "
    return glyphs.ramp[min(steps, len(glyphs.ramp)) - 1]


def heat(values: Iterable[float], top: float, glyphs: Glyphs = UNICODE) -> str:
    """One cell a value, the denser the nearer it is to ``top``."""
    steps = len(glyphs.shades) - 1
    return "".join(glyphs.shades[_step(value, top, steps) if value > 0 else 0] for value in values)
