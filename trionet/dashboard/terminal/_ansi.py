"""The capabilities of the terminal, and frames as escape sequences, of which only changes are sent.

This module can be imported on all platforms.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style

from ..drawing import _themes as themes
from ..drawing._cells import ASCII, FINE, UNICODE, Glyphs, Line
from ..drawing._themes import DARK, LIGHT

# Synchronized output: terminals that support it show the frame at once; others ignore the mode.
_BEGIN: Final = "\x1b[?2026h"
_END: Final = "\x1b[?2026l"


class Painter:
    """Encodes frames as differences from the current content of the terminal.

    Args:
        colors: the colour system of the terminal; None to use only attributes such as bold.
        encoding: the character encoding of the terminal.
        theme: the name of the initial theme.
    """

    def __init__(self, colors: ColorSystem | None, encoding: str, theme: str = DARK) -> None:
        self._colors = colors
        self._encoding = encoding
        self._theme = themes.theme(theme, colors)
        self._shown: list[Line] = []
        self._codes: dict[Style, str] = {}

    @property
    def theme(self) -> str:
        """The name of the theme."""
        return self._theme.name

    def use_theme(self, name: str) -> None:
        """Use a theme from the next frame on, which is encoded completely."""
        if name != self._theme.name:
            self._theme = themes.theme(name, self._colors)
            self._codes.clear()
            self.forget()

    def forget(self) -> None:
        """Encode the next frame completely, because the content of the terminal is unknown."""
        self._shown = []

    def paint(self, lines: Sequence[Line]) -> bytes:
        """Return the bytes that draw these lines, each of which is as wide as the screen."""
        is_whole = len(self._shown) != len(lines)
        out: list[str] = ["\x1b[0m\x1b[2J"] if is_whole else []
        for row, line in enumerate(lines):
            if is_whole or line != self._shown[row]:
                out.append(f"\x1b[{row + 1};1H")
                self._write(line, out)
        self._shown = list(lines)
        if not out:
            return b""
        text = "".join((_BEGIN, *out, _END))
        return text.encode(self._encoding, "replace")

    def _write(self, line: Line, out: list[str]) -> None:
        column = 0
        for text, style, _ in line:
            codes = self._codes_of(style) if style else ""
            out.append(f"\x1b[{codes}m{text}\x1b[0m" if codes else text)
            column += len(text)
            # Terminals disagree about the width of such characters; the next text is positioned.
            if not text.isascii() and (cells := cell_len(text)) != len(text):
                column += cells - len(text)
                out.append(f"\x1b[{column + 1}G")

    def _codes_of(self, style: Style) -> str:
        codes = self._codes.get(style)
        if codes is None:
            codes = self._codes[style] = ";".join(_codes(self._theme.style(style), self._colors))
        return codes


def _codes(style: Style, colors: ColorSystem | None) -> list[str]:
    """Return the SGR parameters of a style. Rich caches them for a single colour system only."""
    attributes = (
        (style.bold, "1"),
        (style.dim, "2"),
        (style.italic, "3"),
        (style.underline, "4"),
        (style.reverse, "7"),
    )
    codes = [code for is_on, code in attributes if is_on]
    if colors is not None:
        if style.color is not None:
            codes += style.color.downgrade(colors).get_ansi_codes(foreground=True)
        if style.bgcolor is not None:
            codes += style.bgcolor.downgrade(colors).get_ansi_codes(foreground=False)
    return codes


def is_interactive() -> bool:
    """Return whether standard input and output are a terminal that supports the dashboard.

    FORCE_COLOR has no effect, because a pipe is not a terminal. A Windows console is not supported.
    """
    if os.environ.get("TERM", "") in {"", "dumb"} or find_spec("termios") is None:
        return False
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def color_system() -> ColorSystem | None:
    """Return the colour system that the terminal supports, or None if NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return None
    # As in rich's Console; importing it would take a tenth of the time to the first frame.
    if os.environ.get("COLORTERM", "").strip().lower() in {"truecolor", "24bit"}:
        return ColorSystem.TRUECOLOR
    kind = os.environ.get("TERM", "").strip().lower().rpartition("-")[2]
    return ColorSystem.EIGHT_BIT if kind in {"256color", "kitty"} else ColorSystem.STANDARD


def terminal_glyphs(colors: ColorSystem | None, *, is_ascii: bool | None = None) -> Glyphs:
    """Return the characters for drawing.

    Args:
        colors: the colour system of the terminal; fine charts need 24-bit colour.
        is_ascii: whether to use only ASCII; if None, the locale decides.
    """
    if is_ascii is None:
        names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
        # Python's standard output is UTF-8 even where the locale is C.
        locale = next(filter(None, names), sys.stdout.encoding or "ascii")
        is_ascii = "utf" not in locale.lower()
    if is_ascii:
        return ASCII
    return FINE if colors is ColorSystem.TRUECOLOR else UNICODE


def presumed_theme() -> str:
    """Return the theme for a background colour in COLORFGBG, or the dark one without it.

    Rxvt, Konsole and others set it to the numbers of two of the 16 basic colours: that of text, and
    last its background.
    """
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if background in _LIGHT_COLORS else DARK


#: White, and the bright colours except for black, which is a dark grey.
_LIGHT_COLORS: Final = frozenset({"7", *map(str, range(9, 16))})
