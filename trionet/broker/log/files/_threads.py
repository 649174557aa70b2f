"""Blocking work where it belongs: in a thread, unless the folder is memory and nothing blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

if TYPE_CHECKING:
    from ._directory import Directory

T = TypeVar("T")


class InThread(Protocol):
    """See :meth:`trionet.broker.log.files._directory.Directory.in_thread`."""

    async def __call__(
        self, work: Callable[[], T], limiter: trio.CapacityLimiter | None = None
    ) -> T: ...


async def in_thread(work: Callable[[], T], limiter: trio.CapacityLimiter | None = None) -> T:
    """Call ``work()`` in a thread of trio's.

    Cancellation: before the call it is not made; during it this waits for its end.
    """
    return await trio.to_thread.run_sync(work, limiter=limiter)


async def run_blocking(directory: Directory, work: Callable[..., T], *args: object) -> T:
    """Call ``work(*args)``, which uses ``directory``. Always a checkpoint.

    Cancellation: before the call it is not made; during it this waits for its end.
    """
    if directory.is_durable:
        return await directory.in_thread(partial(work, *args))
    await trio.lowlevel.checkpoint()
    return work(*args)
