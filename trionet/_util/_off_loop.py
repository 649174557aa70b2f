"""Runs computations in a thread if they would hold the loop for long, otherwise directly."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

import trio

#: From this size on, a thread is worth its 50 to 100 microseconds. The slowest codec compresses as
#: much in some four milliseconds, and nothing may hold the loop for more than five.
OFF_LOOP_BYTES: Final = 256 * 1024

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_limiter: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("off_loop")


async def off_loop(size: int, function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call ``function(*args)``, in a thread if ``size`` is large. Always a checkpoint.

    At most one thread per processor computes at a time, and further calls wait: more threads would
    only hold more memory. Threads that wait for disks are separate (trio's default limiter).

    Args:
        size: the number of bytes that ``function`` processes, read or written.
        function: computes without waiting, since it is not interrupted. In a thread it must release
            the GIL for most of its time, as the codecs do, or it blocks the loop all the same.
        args: the arguments of ``function``.

    Raises:
        BaseException: what ``function`` raises, unchanged.

    Cancellation: takes effect before the call. Once the call has begun, this waits for it to finish
    and returns its result, so that no thread reads a buffer that its owner reuses.
    """
    if size < OFF_LOOP_BYTES:
        await trio.lowlevel.checkpoint()
        return function(*args)
    return await trio.to_thread.run_sync(function, *args, limiter=computing_threads())


def computing_threads() -> trio.CapacityLimiter:
    """Return the limiter of all computing threads of this trio run: one thread per processor."""
    return limiter_of_run(_limiter, os.cpu_count() or 1)


def limiter_of_run(
    limiter: trio.lowlevel.RunVar[trio.CapacityLimiter], tokens: int
) -> trio.CapacityLimiter:
    """Return the limiter of this trio run, with ``tokens``; its first use creates it."""
    try:
        return limiter.get()
    except LookupError:
        created = trio.CapacityLimiter(tokens)
        limiter.set(created)
        return created
