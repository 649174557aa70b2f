"""Reading much in small steps, so that what shares the loop goes on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Final

import trio

#: The share of the processor that reading may take while nothing is waited for by a user.
SHARE: Final = 0.05
#: The longest rest after a step, in seconds.
REST_SECONDS_MAX: Final = 1.0


class Pace:
    """Rests after each step for as long as keeps to a share of the processor's time.

    What others do on the loop meanwhile counts as well, so that a busy loop is read from less.

    Args:
        share: 0 to 1; 1 never rests, but lets others have their turn.
        is_needed: whether what is read is still wanted; asked before each step.
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
        """A step begins here."""
        self._began = thread_time()

    async def rest(self) -> None:
        """A step has ended; the next begins when this returns."""
        spent = thread_time() - self._began
        rest = spent / self._share - spent
        await trio.sleep(min(rest, REST_SECONDS_MAX))
        self._began = thread_time()
