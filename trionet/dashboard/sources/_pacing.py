"""Paces long reads in small steps, so that other tasks on the loop can run in between."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Final

import trio

#: The share of CPU time that reading may take while no user waits for it.
SHARE: Final = 0.05
#: The longest rest after a step, in seconds.
REST_SECONDS_MAX: Final = 1.0


class Pace:
    """Rests after each step, so that reading keeps to a share of CPU time.

    Other tasks of this thread count as well, so that a busy loop is used less.

    Args:
        share: 0 to 1; 1 never rests, but runs a checkpoint.
        is_needed: returns whether the data is still needed; called before each step.
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
        """Mark the start of a step."""
        self._began = thread_time()

    async def rest(self) -> None:
        """Mark the end of a step; the next one starts when this returns."""
        spent = thread_time() - self._began
        rest = spent / self._share - spent
        await trio.sleep(min(rest, REST_SECONDS_MAX))
        self._began = thread_time()
