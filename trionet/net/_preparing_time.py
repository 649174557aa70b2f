"""The time that a loop spends on peers who are not known yet, for each of its passes.

All selectors of a loop have it together, for what one of them does holds up the others as well. A
step of a handshake costs as much as a hundred requests, with a long RSA key as a thousand, and
cannot be cut short: so time is counted, not steps. What a step takes beyond the time of its pass is
missing in the next ones, up to a limit: a request takes several passes from its arrival to its
answer, and is to meet one long step, not one in each of them.

A pass is over when a selector comes again that has come before. Who had to wait in one pass is
before the others in the next, or the first to come could take all of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from trio.lowlevel import RunVar

# What a request waits for at most because of strangers, beside the step that goes beyond it.
SECONDS_PER_PASS_MAX = 0.002
# How much of a long step is made up for, in passes; after these there is time for another.
PASSES_OWED_MAX = 4


class PreparingTime:
    """Decides who may make the next step; pure but for its clock.

    Args:
        seconds_max: for all steps of one pass.
        clock: seconds, of any origin.
    """

    def __init__(self, seconds_max: float, clock: Callable[[], float] = perf_counter) -> None:
        self._seconds_max = seconds_max
        self._clock = clock
        self._spent = 0.0
        self._turns: dict[object, int] = {}  # of this pass, by who came in it
        self._served: set[object] = set()  # in this pass
        self._waiting: dict[object, None] = {}  # who waits for longest comes first

    def may_work(self, worker: object, turn: int) -> bool:
        """Whether a worker may make a step; if not, it asks again in its next turn.

        Args:
            worker: who asks.
            turn: changes from one pass of the loop to the next.
        """
        if self._turns.get(worker, turn) != turn:
            self._begin_pass()
        self._turns[worker] = turn
        has_time = self._spent <= self._seconds_max
        if has_time and worker is next(iter(self._waiting), worker):
            self._served.add(worker)
            return True
        self._waiting[worker] = None
        return False

    def _begin_pass(self) -> None:
        # Who waited and did not come has nothing to do any more.
        waiting = [each for each in self._waiting if each in self._turns]
        self._waiting = dict.fromkeys(each for each in waiting if each not in self._served)
        self._turns.clear()
        self._served.clear()
        owed = max(0.0, self._spent - self._seconds_max)
        self._spent = min(owed, PASSES_OWED_MAX * self._seconds_max)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the time of a step."""
        began = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - began


_of_loop: RunVar[PreparingTime] = RunVar("trionet.net._preparing_time")


def preparing_time() -> PreparingTime:
    """That of the loop that runs."""
    try:
        return _of_loop.get()
    except LookupError:
        found = PreparingTime(SECONDS_PER_PASS_MAX)
        _of_loop.set(found)
        return found
