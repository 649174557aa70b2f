"""Threads that read keystores and truststores, and that can be abandoned.

A path may lead to a disk that does not respond, and decrypting a key may take seconds. Neither may
prevent a broker from being reconfigured or stopped, or use up the threads that other tasks need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

import trio

from ..._util._off_loop import limiter_of_run
from ...errors import ConfigError

#: The maximum time for reading the stores that a client named.
STORE_SECONDS_MAX: Final = 10.0
#: The maximum number of threads that read stores, including abandoned ones.
STORE_THREADS_MAX: Final = 4

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_limiter: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("store_threads")


async def in_store_thread(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call ``function(*args)`` in a thread that can be abandoned.

    Args:
        function: reads stores; must not have side effects, because the thread may be abandoned.
        args: the arguments of ``function``.

    Raises:
        BaseException: any exception that ``function`` raises.

    Cancellation: takes effect immediately; the thread is abandoned.
    """
    limiter = limiter_of_run(_limiter, STORE_THREADS_MAX)
    return await trio.to_thread.run_sync(function, *args, abandon_on_cancel=True, limiter=limiter)


async def in_bounded_time(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call ``function(*args)`` in a thread within a time limit, for stores that a client named.

    Raises:
        ConfigError: the call takes longer than :data:`STORE_SECONDS_MAX`.
        BaseException: any exception that ``function`` raises.

    Cancellation: takes effect immediately; the thread is abandoned.
    """
    with trio.move_on_after(STORE_SECONDS_MAX):
        return await in_store_thread(function, *args)
    raise ConfigError(
        f"the keystores and truststores could not be read within {STORE_SECONDS_MAX:.0f} s; make"
        " sure that the disk responds, and that decrypting the keys takes less time"
    )
