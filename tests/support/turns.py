"""How often the other tasks have their turn while something goes on."""

from __future__ import annotations

from collections.abc import Awaitable

import trio


async def turns_during(work: Awaitable[object]) -> int:
    """How many turns another task has until ``work`` is done."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await work
        nursery.cancel_scope.cancel()
    return turns
