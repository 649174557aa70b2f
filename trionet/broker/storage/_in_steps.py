"""Long computations of Python on the loop, in steps between which everybody else has a turn."""

from __future__ import annotations

from typing import Final, TypeVar

import trio

from ..._util._off_loop import OFF_LOOP_BYTES, off_loop
from ...protocol.records._steps import Steps, Work

#: How many computations take turns; others wait for the end of one. Each adds a step, less than a
#: millisecond, to the time in which everybody has a turn, and all hold memory.
AT_A_TIME: Final = 3

_limiter: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("in_steps")

T = TypeVar("T")


async def in_steps(steps: Steps[T]) -> T:
    """Compute in steps, and return the result. Always a checkpoint, after each step at the latest.

    Calls that leave the interpreter to others are made in a thread if they have much to do.

    Raises:
        BaseException: what the computation raises, as it is.

    Cancellation: between two steps, or when a call in a thread has ended; the computation is closed
    and nothing of it stays.
    """
    async with _turns():
        try:
            work = next(steps)
            while True:
                await trio.lowlevel.checkpoint()
                try:
                    made = await _make(work) if work is not None else None
                except Exception as error:  # boundary: one call, whose computation is told
                    work = steps.throw(error)
                else:
                    work = steps.send(made)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            steps.close()


async def _make(work: Work) -> object:
    return work.call() if work.size < OFF_LOOP_BYTES else await off_loop(*work)


def _turns() -> trio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(AT_A_TIME)
        _limiter.set(limiter)
        return limiter
