"""Computations in steps on the loop: everybody else has a turn, and whoever is cancelled leaves."""

from __future__ import annotations

import threading

import pytest
import trio

from trionet._util._off_loop import OFF_LOOP_BYTES
from trionet.broker.storage._record_conversion import AT_A_TIME, in_steps
from trionet.protocol.records.message_sets._conversion import Steps, Work


async def test_others_go_on_between_two_steps() -> None:
    told: list[str] = []

    def steps() -> Steps[str]:
        for number in range(3):
            told.append(f"step {number}")
            yield None
        return "done"

    async def other() -> None:
        for _ in range(3):
            told.append("other")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        assert await in_steps(steps()) == "done"

    assert "other" in told[told.index("step 0") : told.index("step 2")]


@pytest.mark.parametrize(("size", "is_here"), [(0, True), (OFF_LOOP_BYTES, False)])
async def test_much_work_is_done_in_a_thread(size: int, is_here: bool) -> None:
    def steps() -> Steps[bool]:
        thread = yield Work(size, threading.get_ident)
        return bool(thread == threading.get_ident())

    assert await in_steps(steps()) is is_here


@pytest.mark.parametrize("size", [0, OFF_LOOP_BYTES])
async def test_what_work_raises_is_raised_where_it_was_asked_for(size: int) -> None:
    def fail() -> None:
        raise ValueError("no")

    def steps() -> Steps[str]:
        try:
            yield Work(size, fail)
        except ValueError as error:
            return f"caught {error}"
        return "nothing was raised"

    assert await in_steps(steps()) == "caught no"


async def test_who_is_cancelled_leaves_after_a_step_and_the_computation_is_closed() -> None:
    told: list[str] = []

    def steps() -> Steps[None]:
        try:
            while True:
                told.append("step")
                yield None
        finally:
            told.append("closed")

    with trio.CancelScope() as scope:
        scope.cancel()
        await in_steps(steps())

    assert scope.cancelled_caught
    assert told in ([], ["closed"], ["step", "closed"])


async def test_only_some_are_at_work_at_a_time() -> None:
    at_work = most = 0

    def steps() -> Steps[None]:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        for _ in range(5):
            yield None
        at_work -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(3 * AT_A_TIME):
            nursery.start_soon(in_steps, steps())

    assert most == AT_A_TIME
