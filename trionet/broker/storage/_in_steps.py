"""Runs long computations in Python on the loop, in steps between which other tasks run."""

from __future__ import annotations

from typing import Final, TypeVar

import trio

from ..._util._off_loop import OFF_LOOP_BYTES, off_loop
from ...protocol.records._steps import Steps, Work

#: How many computations run concurrently; further ones are queued. Each adds a step of less than a
#: millisecond to every pass of the loop, and each holds memory.
AT_A_TIME: Final = 3

_limiter: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("in_steps")

T = TypeVar("T")


async def in_steps(steps: Steps[T]) -> T:
    """Run a computation in steps and return its result. A checkpoint after every step.

    Calls that release the GIL run in a thread if they are large.

    Raises:
        BaseException: any exception of the computation.

    Cancellation: between two steps, or after a call in a thread; the computation is closed.
    """
    async with _turns():
        try:
            work = next(steps)
            while True:
                await trio.lowlevel.checkpoint()
                try:
                    made = await _make(work) if work is not None else None
                except Exception as error:  # boundary: passed on into the computation
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
