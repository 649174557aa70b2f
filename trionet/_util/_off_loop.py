"""Computations that run in a thread if they would block the loop for too long."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

import trio

#: The minimum size, in bytes, for which a thread is worth its 50 to 100 microseconds. The slowest
#: codec compresses this size in about four milliseconds, and nothing may block the loop for more
#: than five.
OFF_LOOP_BYTES: Final = 256 * 1024

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_limiter: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("off_loop")


async def off_loop(size: int, function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call ``function(*args)``, in a thread if ``size`` is large. Always a checkpoint.

    At most one thread per CPU computes at a time, and further calls wait, since more threads would
    only use more memory. Threads that wait for disks are counted separately (trio's default
    limiter).

    Args:
        size: the number of bytes that ``function`` reads or writes.
        function: the computation, which must not wait for anything, since it cannot be interrupted.
            It must release the GIL most of the time, as the codecs do; otherwise it blocks the loop
            even from a thread.
        args: the arguments of ``function``.

    Raises:
        BaseException: any exception that ``function`` raises.

    Cancellation: takes effect before the call. Once ``function`` has started, this waits until it
    finishes and returns its result, so that no thread reads a buffer that its owner is reusing.
    """
    if size < OFF_LOOP_BYTES:
        await trio.lowlevel.checkpoint()
        return function(*args)
    return await trio.to_thread.run_sync(function, *args, limiter=computing_threads())


def computing_threads() -> trio.CapacityLimiter:
    """Return the limiter of this trio run's computing threads: one thread per CPU."""
    return limiter_of_run(_limiter, os.cpu_count() or 1)


def limiter_of_run(
    limiter: trio.lowlevel.RunVar[trio.CapacityLimiter], tokens: int
) -> trio.CapacityLimiter:
    """Return the value of ``limiter`` in this trio run, creating it with ``tokens`` if unset."""
    try:
        return limiter.get()
    except LookupError:
        created = trio.CapacityLimiter(tokens)
        limiter.set(created)
        return created
