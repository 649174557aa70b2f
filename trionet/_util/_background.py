"""The nursery of tasks on which the caller's own calls depend.

If cancellation from outside reached these tasks, they would end while the caller's clean-up, which
may shield itself, still waits for what they do: for a response that no task reads any more. They
therefore run until the caller's block ends, whatever is cancelled around it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from ._raising import raise_single_error


@asynccontextmanager
async def open_background_nursery() -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose tasks run until the block ends, even while the block is cancelled.

    The end of the block cancels the tasks and waits for them, so a task must not shield itself from
    that for long. An error of a task cancels the other tasks and the block, and is raised by the
    block; a single error is raised without a group (see :func:`.raise_single_error`). If the block
    meanwhile raises ClosedResourceError, since what it called has ended with the failed task, that
    error is dropped.

    Cancellation: reaches the block, but not the tasks. Opening takes two passes of the scheduler
    and is not cancelled.
    """
    with raise_single_error((trio.ClosedResourceError,)) as caller:
        async with trio.open_nursery() as outer:
            with trio.CancelScope(shield=True):  # bounded: the task does not wait before it starts
                inner: trio.Nursery = await outer.start(_hold_nursery)
            try:
                with caller.block():
                    yield inner
            finally:
                inner.cancel_scope.cancel(reason="the block has ended")


async def _hold_nursery(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    # The nursery belongs to a task of its own, since a shield around the block would shield the
    # caller's code as well.
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()


async def call_at_end(function: Callable[[], object]) -> None:
    """Call a function when the nursery that runs this task is cancelled.

    A background nursery is cancelled at the end of its block, and when one of its tasks has failed.
    Calls that shield themselves must then not wait any longer for what the tasks did.
    """
    try:
        await trio.sleep_forever()
    finally:
        function()
