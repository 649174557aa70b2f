"""Which task makes the next turn of a producer's sender: one at a time, and always one.

A turn can be made by any task. The *sending task* makes them as a rule. A task that waits for the
response to its one record makes them itself, because being woken by another costs a pass of the
scheduler, a fifth of what a lone record takes. So the turns are handed over, like a baton:

* while another task holds it, the sending task *stands by*, asleep;
* a task that has what it waited for leaves the baton. If there is work, the sending task is woken
  at once; if there is none, only after a pause: the next record is most likely awaited in the same
  way, and waking the sending task in between costs a sixth of such a record;
* whatever gives it work calls the sending task, unless a turn is under way, which will see it.

What was refused: a lock, whose order among waiting tasks nobody needs, and a task that is woken for
every record. Think again if a pass of trio's scheduler ever costs less than a microsecond.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio

#: How long no task makes turns after an awaited record, unless there is something to do.
PAUSE_SECONDS: Final = 0.05


class Baton:
    """Hands the turns of one sender from task to task.

    Args:
        clock: seconds of the loop's clock.

    Attributes:
        is_held: a turn is under way.
        has_ended: no turn is made any more.
        waiting: tasks that wait for a response while another makes the turns.
    """

    __slots__ = ("_clock", "_stand_by", "has_ended", "is_held", "waiting")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stand_by: trio.CancelScope | None = None
        self.is_held = self.has_ended = False
        self.waiting = 0

    async def stand_by(self) -> None:
        """Sleep, as the sending task, until the turns are this task's again."""
        with trio.CancelScope() as self._stand_by:
            await trio.sleep_forever()
        self._stand_by = None

    def call(self) -> None:
        """Wake the sending task if it stands by and no turn is under way."""
        if self._stand_by is not None and not self.is_held:
            self._stand_by.cancel()

    def leave(self, *, has_work: bool) -> None:
        """Leave the turns to the sending task: now if there is work, or soon."""
        stand_by = self._stand_by
        if stand_by is None:
            return
        if has_work or self.has_ended:
            stand_by.cancel()
        elif stand_by.deadline == math.inf:
            stand_by.deadline = self._clock() + PAUSE_SECONDS

    def end(self) -> None:
        """Let the sending task end: no turn is made any more."""
        self.has_ended = True
        self.call()
