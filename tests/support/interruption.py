"""What a thread does in the middle of a call, made to happen at each moment of it in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any


def call_interrupted(
    function: Callable[[], object],
    lines: int,
    interruption: Callable[[], object],
    apart_from: Collection[str] = (),
    start_at: str = "",
) -> bool:
    """Call ``function``, and ``interruption`` when it has executed so many lines of the package.

    As if another thread had got its turn there, or as if something had gone wrong there, if it
    raises. Which moments there are is tried out by counting up until the response is no.

    Args:
        function: what is interrupted.
        lines: after how many.
        interruption: what happens then.
        apart_from: qualified names of functions whose lines do not count.
        start_at: the qualified name of the function with whose call counting starts.

    Returns:
        The call was interrupted: it had not ended before.
    """
    left = lines
    has_started = not start_at
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left, has_started
        if not frame.f_globals.get("__name__", "").startswith("trionet."):
            return None
        if apart_from and frame.f_code.co_qualname in apart_from:
            return None
        has_started = has_started or frame.f_code.co_qualname == start_at
        if event == "line" and has_started:
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
