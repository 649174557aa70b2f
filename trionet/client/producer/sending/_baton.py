"""The baton, which decides which task runs the producer's sender.

Only one task at a time runs the sender, normally the *sending task*. A task that waits for the
response to a single record runs the sender in the meantime, because being woken by another task
costs a scheduler pass, a fifth of the latency of such a record. The right to run the sender is
passed like a baton:

* While another task holds the baton, the sending task *stands by*, asleep.
* A task releases the baton when it has its result. The sending task is then woken immediately if
  there is work to do, and otherwise after a pause, because the next record will most likely be
  awaited in the same way. Waking the sending task in between costs a sixth of a record's latency.
* New work wakes the sending task, unless the sender is already running and will notice the work.

Rejected: a lock, which would impose an unnecessary order on the waiting tasks, and waking a task
for every record. Reconsider if a pass of trio's scheduler ever costs less than a microsecond.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio

#: The time for which the sending task sleeps after an awaited record, unless new work wakes it.
PAUSE_SECONDS: Final = 0.05


class Baton:
    """The right to run a sender, which passes from task to task.

    Args:
        clock: returns the current time on the event loop's clock, in seconds.

    Attributes:
        is_held: whether a task is running the sender.
        has_ended: whether the sender has stopped permanently.
        waiting: the number of tasks waiting for a response while another task runs the sender.
    """

    __slots__ = ("_clock", "_stand_by", "has_ended", "is_held", "waiting")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stand_by: trio.CancelScope | None = None
        self.is_held = self.has_ended = False
        self.waiting = 0

    async def stand_by(self) -> None:
        """Put the sending task to sleep until it must run the sender again."""
        with trio.CancelScope() as self._stand_by:
            await trio.sleep_forever()
        self._stand_by = None

    def call(self) -> None:
        """Wake the sending task if it is standing by and the sender is not running."""
        if self._stand_by is not None and not self.is_held:
            self._stand_by.cancel()

    def leave(self, *, has_work: bool) -> None:
        """Wake the sending task, immediately if there is work, otherwise after a pause."""
        stand_by = self._stand_by
        if stand_by is None:
            return
        if has_work or self.has_ended:
            stand_by.cancel()
        elif stand_by.deadline == math.inf:
            stand_by.deadline = self._clock() + PAUSE_SECONDS

    def end(self) -> None:
        """Stop the sender permanently, and wake the sending task so that it returns."""
        self.has_ended = True
        self.call()
