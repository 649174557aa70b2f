"""Paces long reads in small steps, so that other tasks can run between steps."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Final

import trio

#: The maximum share of CPU time for reading if the user is not waiting.
SHARE: Final = 0.05
#: The maximum rest after a step, in seconds.
REST_SECONDS_MAX: Final = 1.0


class Pace:
    """The pace of a read, which rests after each step to limit its share of CPU time.

    The CPU time of other tasks on this thread counts, too, so that reads slow down on a busy loop.

    Args:
        share: the share of CPU time, 0 to 1; with 1, a rest is only a checkpoint.
        is_needed: returns whether the data is still needed, for the reader to check before a step.
    """

    def __init__(
        self,
        share: float = SHARE,
        is_needed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._share = share
        self.is_needed = is_needed
        self._began = thread_time()

    def begin(self) -> None:
        """Begin a step."""
        self._began = thread_time()

    async def rest(self) -> None:
        """End a step, rest, and begin the next step."""
        spent = thread_time() - self._began
        rest = spent / self._share - spent
        await trio.sleep(min(rest, REST_SECONDS_MAX))
        self._began = thread_time()
