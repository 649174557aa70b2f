"""A checkpoint that costs less is one all the same."""

from __future__ import annotations

import trio
from trio.lowlevel import current_task

from trionet._util._cancellation import Checkpoint, is_task_cancelled


async def test_checkpoint_lets_the_other_tasks_run() -> None:
    seen: list[int] = []

    async def count(first: int) -> None:
        checkpoint = Checkpoint()
        for number in range(first, 6, 2):
            seen.append(number)
            await checkpoint

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count, 0)
        nursery.start_soon(count, 1)

    assert [{0, 1}, {2, 3}, {4, 5}] == [set(seen[at : at + 2]) for at in (0, 2, 4)]


async def test_checkpoint_of_a_cancelled_task_ends_it() -> None:
    checkpoint = Checkpoint()
    with trio.CancelScope() as scope:
        await checkpoint
        scope.cancel()
        assert is_task_cancelled(current_task())
        await checkpoint
        raise AssertionError("not reached")
    assert scope.cancelled_caught
    await checkpoint


async def test_checkpoint_in_a_shielded_scope_goes_on() -> None:
    checkpoint = Checkpoint()
    with trio.CancelScope() as outer:
        with trio.CancelScope(shield=True):
            outer.cancel()
            await checkpoint
        assert is_task_cancelled(current_task())
