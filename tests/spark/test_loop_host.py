"""The loop in a thread, and what is kept open in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from trionet.spark._loop_host import IDLE_SECONDS, LoopHost, host


class Things:
    """Counts what is opened and closed."""

    def __init__(self) -> None:
        self.opened = self.closed = 0
        self.was_closed = trio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        self.opened += 1
        try:
            yield self.opened
        finally:
            self.closed += 1
            self.was_closed.set()


@pytest.fixture
def loop() -> Iterator[LoopHost]:
    it = LoopHost()
    try:
        yield it
    finally:
        it.close()


def test_a_call_returns_and_raises_as_its_function_does(loop: LoopHost) -> None:
    async def return_it(number: int) -> int:
        await trio.lowlevel.checkpoint()
        return number

    async def fail(text: str) -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError(text)

    assert 5 == loop.call(return_it, 5)
    with pytest.raises(ValueError, match="no"):
        loop.call(fail, "no")


def test_there_is_one_loop_until_it_is_closed() -> None:
    first = host()
    try:
        assert host() is first
        first.close()

        assert host() is not first
        with pytest.raises(trio.RunFinishedError):
            first.call(trio.lowlevel.checkpoint)
    finally:
        host().close()


def test_what_is_leased_is_opened_once_for_all_its_users(loop: LoopHost) -> None:
    things = Things()

    async def use_twice() -> list[int]:
        async with loop.lease("a", things.open) as one, loop.lease("a", things.open) as two:
            pass
        async with loop.lease("a", things.open) as three, loop.lease("b", things.open) as other:
            return [one, two, three, other]

    assert [1, 1, 1, 2] == loop.call(use_twice)
    loop.close()
    assert 2 == things.closed


def test_what_was_dropped_is_closed_after_its_last_user(loop: LoopHost) -> None:
    things = Things()

    async def drop() -> tuple[int, int, int]:
        async with loop.lease("a", things.open):
            loop.drop("a")
            await trio.testing.wait_all_tasks_blocked()
            closed = things.closed
            async with loop.lease("a", things.open) as another:
                pass
        await things.was_closed.wait()
        return closed, another, things.closed

    assert (0, 2, 1) == loop.call(drop)


def test_what_cannot_be_opened_is_tried_again_by_the_next(loop: LoopHost) -> None:
    attempts: list[int] = []

    @asynccontextmanager
    async def fail_once() -> AsyncIterator[str]:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        yield "open"

    async def lease() -> str:
        async with loop.lease("a", fail_once) as value:
            return value

    with pytest.raises(OSError, match="not yet"):
        loop.call(lease)
    assert "open" == loop.call(lease)


async def test_what_is_not_used_is_closed_after_a_while(autojump_clock: trio.abc.Clock) -> None:
    del autojump_clock
    things = Things()
    it = LoopHost.__new__(LoopHost)  # its parts in this loop, whose time is virtual
    it._resources = {}
    it._opening = trio.Lock()
    async with trio.open_nursery() as it._nursery:
        async with it.lease("a", things.open):
            await trio.sleep(2 * IDLE_SECONDS)
        assert 0 == things.closed
        began_at = trio.current_time()
        await things.was_closed.wait()

        assert IDLE_SECONDS == trio.current_time() - began_at
        assert {} == it._resources


def test_what_is_imported_by_then_is_no_garbage_to_look_through() -> None:
    """Spark collects all garbage after each task; not what the first host of a process finds."""
    program = (
        "import gc\nfrom trionet.spark._loop_host import host\nbefore = len(gc.get_objects())\n"
        "host()\nprint(gc.get_freeze_count() > 0.9 * before > 9 * len(gc.get_objects()))\n"
        "frozen = gc.get_freeze_count()\nhost().close()\nhost()\n"
        "print(frozen == gc.get_freeze_count())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ["True", "True"] == done.stdout.split()
