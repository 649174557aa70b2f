"""Computing in a thread what would hold the loop for long, and at once what would not."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

import trio

#: From so many bytes on a thread is worth its 50 to 100 microseconds. The slowest codec compresses
#: as much in some four milliseconds, and nothing may hold the loop for more than five.
OFF_LOOP_BYTES: Final = 256 * 1024

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_limiter: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("off_loop")


async def off_loop(size: int, function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call ``function(*args)``, in a thread if it has much to do. Always a checkpoint.

    As many threads as there are processors compute at a time, and who comes later waits: more would
    only hold more memory. They are not those that wait for disks (trio's default limiter).

    Args:
        size: the bytes that ``function`` works through, read or written.
        function: computes and waits for nothing, for it is not interrupted. In a thread it must
            release the GIL for most of its time, as the codecs do, or the loop stands all the same.
        args: what it is called with.

    Raises:
        BaseException: what ``function`` raises, as it is.

    Cancellation: before the call it is not made. Once it has begun this waits for its end and
    returns what it returned, so that no thread reads a buffer that its owner uses again.
    """
    if size < OFF_LOOP_BYTES:
        await trio.lowlevel.checkpoint()
        return function(*args)
    return await trio.to_thread.run_sync(function, *args, limiter=computing_threads())


def computing_threads() -> trio.CapacityLimiter:
    """What all threads of this run of trio that compute share: as many as there are processors."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(os.cpu_count() or 1)
        _limiter.set(limiter)
        return limiter
