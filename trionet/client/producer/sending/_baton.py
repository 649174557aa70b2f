"""Decides which task runs the producer's sender: always exactly one.

Any task can run the sender once; normally the *sending task* does. A task that waits for the
response to its one record runs it itself, because being woken by another task costs a pass of the
scheduler, a fifth of what a lone record takes. So the right to run is passed like a baton:

* while another task holds it, the sending task *stands by*, asleep;
* a task that has its result releases the baton. The sending task is woken at once if there is
  work, and otherwise only after a pause: the next record is most likely awaited in the same way,
  and waking the sending task in between costs a sixth of such a record;
* new work wakes the sending task, unless the sender is running, which will see the work.

Rejected: a lock, which would enforce an order among waiting tasks that is not needed, and waking a
task for every record. Reconsider if a pass of trio's scheduler ever costs less than a microsecond.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio

#: How long the sending task stays asleep after an awaited record, unless there is work.
PAUSE_SECONDS: Final = 0.05


class Baton:
    """Passes the right to run one sender from task to task.

    Args:
        clock: returns the loop's time in seconds.

    Attributes:
        is_held: whether a task is running the sender.
        has_ended: whether the sender has stopped for good.
        waiting: the number of tasks that wait for a response while another runs the sender.
    """

    __slots__ = ("_clock", "_stand_by", "has_ended", "is_held", "waiting")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stand_by: trio.CancelScope | None = None
        self.is_held = self.has_ended = False
        self.waiting = 0

    async def stand_by(self) -> None:
        """Sleep, as the sending task, until it has to run the sender again."""
        with trio.CancelScope() as self._stand_by:
            await trio.sleep_forever()
        self._stand_by = None

    def call(self) -> None:
        """Wake the sending task if it stands by and the sender is not running."""
        if self._stand_by is not None and not self.is_held:
            self._stand_by.cancel()

    def leave(self, *, has_work: bool) -> None:
        """Return the baton to the sending task, at once if there is work, or else after a pause."""
        stand_by = self._stand_by
        if stand_by is None:
            return
        if has_work or self.has_ended:
            stand_by.cancel()
        elif stand_by.deadline == math.inf:
            stand_by.deadline = self._clock() + PAUSE_SECONDS

    def end(self) -> None:
        """Let the sending task end, since the sender has stopped for good."""
        self.has_ended = True
        self.call()
