"""Tasks that run until a block ends, whatever is cancelled around it."""

from __future__ import annotations

import pytest
import trio

from trionet._util._background import call_at_end, open_background_nursery


class Failed(Exception):
    """What a task, or a block, raises."""


async def fail() -> None:
    await trio.lowlevel.checkpoint()
    raise Failed


async def respond(requests: trio.MemoryReceiveChannel[trio.Event]) -> None:
    async for each in requests:
        each.set()


async def test_tasks_go_on_while_the_block_is_cancelled() -> None:
    send, receive = trio.open_memory_channel[trio.Event](1)
    response = trio.Event()
    with send, receive, trio.CancelScope() as scope:
        async with open_background_nursery() as nursery:
            nursery.start_soon(respond, receive)
            scope.cancel()
            with trio.CancelScope(shield=True):
                await send.send(response)
                await response.wait()
            await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_end_of_the_block_cancels_the_tasks_and_waits_for_them(is_cancelled: bool) -> None:
    ended = []

    async def run() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(True)

    with trio.CancelScope() as scope:
        async with open_background_nursery() as nursery:
            nursery.start_soon(run)
            if is_cancelled:
                scope.cancel()
                await trio.lowlevel.checkpoint()

    assert [True] == ended
    assert is_cancelled == scope.cancelled_caught


async def test_block_that_is_cancelled_already_is_entered() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        async with open_background_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)

    assert not scope.cancelled_caught


async def test_error_of_a_task_cancels_the_block_and_is_raised_without_a_group() -> None:
    async def block() -> None:
        async with open_background_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)
            await trio.sleep_forever()

    with pytest.raises(Failed):
        await block()


async def test_error_of_a_task_ends_what_a_shielded_call_waits_for() -> None:
    async def block() -> None:
        is_over = trio.Event()
        async with open_background_nursery() as nursery:
            nursery.start_soon(call_at_end, is_over.set)
            nursery.start_soon(fail)
            with trio.CancelScope(shield=True):
                await is_over.wait()
            await trio.sleep_forever()

    with pytest.raises(Failed):
        await block()


@pytest.mark.parametrize("error", [Failed("own"), ExceptionGroup("own", [Failed(), Failed()])])
async def test_own_error_leaves_the_block_as_it_is(error: Exception) -> None:
    async def block() -> None:
        async with open_background_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise error

    with pytest.raises(type(error)) as caught:
        await block()
    assert error is caught.value
