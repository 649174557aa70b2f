"""A share of the loop's time: how long is rested for what was spent."""

from __future__ import annotations

from time import perf_counter

import pytest
import trio
from trio.testing import MockClock

from trionet.server.metrics._metrics_listener import LoopShare


def work(seconds: float) -> None:
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


def spend(share: LoopShare, seconds: float) -> None:
    with share.spending():
        work(seconds)


def fail_after(seconds: float) -> None:
    work(seconds)
    raise KeyError


async def test_after_time_was_spent_the_next_turn_rests_from_it(autojump_clock: MockClock) -> None:
    share = LoopShare(0.25)
    async with share.turn():
        spend(share, 0.002)
        spend(share, 0.002)

    async with share.turn():
        assert 3 * 0.004 <= trio.current_time()


async def test_time_counts_outside_of_a_turn_and_in_a_block_that_fails(
    autojump_clock: MockClock,
) -> None:
    share = LoopShare(0.1)
    with pytest.raises(KeyError), share.spending():
        fail_after(0.002)

    async with share.turn():
        assert 9 * 0.002 <= trio.current_time()


async def test_who_spent_nothing_for_long_has_saved_nothing(autojump_clock: MockClock) -> None:
    share = LoopShare(0.1)
    await trio.sleep(10)
    spend(share, 0.002)

    async with share.turn():
        assert 10 + 9 * 0.002 <= trio.current_time()


async def test_one_has_the_turn_even_while_it_waits(autojump_clock: MockClock) -> None:
    share = LoopShare(0.1)
    others: list[float] = []

    async def take_turn() -> None:
        async with share.turn():
            others.append(trio.current_time())

    async with trio.open_nursery() as nursery, share.turn():
        nursery.start_soon(take_turn)
        await trio.sleep(5)
        assert [] == others

    assert 5 <= others[0]
