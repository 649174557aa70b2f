"""Blocking work where it belongs: in a thread, unless the folder is memory and nothing blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import trio

from .directory import Directory

T = TypeVar("T")


async def run_blocking(
    directory: Directory,
    work: Callable[..., T],
    *args: object,
    limiter: trio.CapacityLimiter | None = None,
) -> T:
    """Call ``work(*args)``, which uses ``directory``. Always a checkpoint.

    Cancellation: before the call it is not made; during it this waits for its end.
    """
    if directory.is_durable:
        return await trio.to_thread.run_sync(partial(work, *args), limiter=limiter)
    await trio.lowlevel.checkpoint()
    return work(*args)
