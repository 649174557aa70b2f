"""The capabilities of the terminal. This module can be imported on all platforms."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from rich.color import ColorSystem

from ..drawing._cells import ASCII, UNICODE, Glyphs


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


def terminal_glyphs(*, is_ascii: bool | None = None) -> Glyphs:
    """Return the characters for drawing; if ``is_ascii`` is None, the locale decides."""
    if is_ascii is None:
        names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
        # Python's standard output is UTF-8 even where the locale is C.
        locale = next(filter(None, names), sys.stdout.encoding or "ascii")
        is_ascii = "utf" not in locale.lower()
    return ASCII if is_ascii else UNICODE
