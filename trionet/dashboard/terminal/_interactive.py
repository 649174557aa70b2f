"""Whether a terminal is available; importable on platforms without terminals, too."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec


def is_interactive() -> bool:
    """Whether standard input and output are a terminal that a dashboard can be drawn on.

    FORCE_COLOR does not matter: a pipe is not a terminal. Nor is a console of Windows.
    """
    if os.environ.get("TERM", "") in {"", "dumb"} or find_spec("termios") is None:
        return False
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
