"""Whether there is a terminal; also where there can be none."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec


def is_interactive() -> bool:
    """Whether there is a terminal that a dashboard can be drawn on, with somebody in front of it.

    What FORCE_COLOR says does not matter: a pipe is no terminal. Nor is what Windows has.
    """
    if os.environ.get("TERM", "") in {"", "dumb"} or find_spec("termios") is None:
        return False
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
