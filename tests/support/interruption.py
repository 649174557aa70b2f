"""What a thread does in the middle of a call, made to happen at each moment of it in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def call_interrupted(
    function: Callable[[], object], lines: int, interruption: Callable[[], object]
) -> bool:
    """Call ``function``, and ``interruption`` when it has executed so many lines of the package.

    As if another thread had got its turn there; which moments there are is tried out by counting
    up until the answer is no.

    Returns:
        The call was interrupted: it had not ended before.
    """
    left = lines
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_globals.get("__name__", "").startswith("trionet."):
            return None
        if event == "line":
            if not left:
                interruption()
            left -= 1
        return trace

    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return left < 0
