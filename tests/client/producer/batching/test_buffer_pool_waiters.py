from __future__ import annotations

import random
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trionet.client.producer.batching._buffer_pool import BufferPool, BufferPoolWaiters


async def take(waiters: BufferPoolWaiters, pool: BufferPool, size: int) -> None:
    """Take memory as soon as it is there and it is our turn."""
    with waiters.join() as waiter:
        while True:
            await waiter.turn()
            if waiters.try_first(partial(pool.take, size)):
                return


async def test_who_waits_goes_on_when_memory_comes_back() -> None:
    """B3."""
    pool = BufferPool(1000)
    waiters = BufferPoolWaiters(pool)
    pool.take(800)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, waiters, pool, 500)
        await wait_all_tasks_blocked()

        assert 1 == waiters.waiting
        assert 200 == pool.available

        pool.give_back(800)

    assert 500 == pool.available
    assert 0 == waiters.waiting


async def test_who_waits_first_is_served_first() -> None:
    """B3: however little the others want."""
    pool = BufferPool(1000)
    waiters = BufferPoolWaiters(pool)
    pool.take(500)
    pool.take(500)
    served: list[int] = []

    async def wait(size: int) -> None:
        await take(waiters, pool, size)
        served.append(size)

    async with trio.open_nursery() as nursery:
        for size in (700, 100, 300):
            nursery.start_soon(wait, size)
            await wait_all_tasks_blocked()
        pool.give_back(500)
        await wait_all_tasks_blocked()

        assert [] == served

        pool.give_back(500)
        await wait_all_tasks_blocked()

        assert [700, 100] == served
        assert 200 == pool.available

        pool.give_back(700)

    assert [700, 100, 300] == served


async def test_who_does_not_wait_takes_nothing_from_those_who_do() -> None:
    pool = BufferPool(1000)
    waiters = BufferPoolWaiters(pool)
    pool.take(800)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, waiters, pool, 500)
        await wait_all_tasks_blocked()

        assert not pool.take(100)

        pool.give_back(800)

        assert not pool.take(100)

    assert pool.take(100)
    assert 400 == pool.available


@pytest.mark.parametrize("place", [0, 1])
async def test_who_gives_up_leaves_nothing_behind(place: int) -> None:
    """B5: no waiter, all memory, and the next one's turn comes."""
    pool = BufferPool(1000)
    waiters = BufferPoolWaiters(pool)
    pool.take(1000)
    scopes = [trio.CancelScope() for _ in range(2)]
    done: list[int] = []

    async def wait(number: int) -> None:
        with scopes[number]:
            await take(waiters, pool, 600)
            done.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(wait, number)
            await wait_all_tasks_blocked()
        scopes[place].cancel(reason="a test")
        await wait_all_tasks_blocked()

        assert 1 == waiters.waiting

        pool.give_back(1000)

    assert [1 - place] == done
    assert 0 == waiters.waiting
    assert 400 == pool.available


async def test_many_tasks_leave_all_memory_free(autojump_clock: trio.testing.MockClock) -> None:
    """B7."""
    pool = BufferPool(10_000)
    waiters = BufferPoolWaiters(pool)
    rng = random.Random(7)
    peak = 0

    async def use() -> None:
        nonlocal peak
        for _ in range(50):
            size = rng.randrange(1, 6000)
            await take(waiters, pool, size)
            peak = max(peak, pool.bytes_max - pool.available)
            await trio.sleep(rng.random() / 100)
            pool.give_back(size)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(use)

    assert pool.bytes_max == pool.available
    assert 0 == waiters.waiting
    assert 6000 < peak <= 10_000


async def test_the_end_wakes_all_who_wait() -> None:
    """B9: each finds out by itself that there is no more to be had."""
    waiters = BufferPoolWaiters(BufferPool(1000))
    is_closed = False
    turns: list[int] = []

    async def wait(number: int) -> None:
        with waiters.join() as waiter:
            while not is_closed:
                await waiter.turn()
                turns.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(wait, number)
            await wait_all_tasks_blocked()

        assert {0} == set(turns)

        is_closed = True
        waiters.wake_all()

    assert {0, 1, 2} == set(turns)
    assert 0 == waiters.waiting
