from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from trionet._util._off_loop import OFF_LOOP_BYTES, off_loop

LOOP_OR_THREAD = pytest.mark.parametrize(
    "size", [0, OFF_LOOP_BYTES - 1, OFF_LOOP_BYTES, 1 << 30], ids=str
)


@pytest.mark.parametrize(
    ("size", "is_here"),
    [(0, True), (OFF_LOOP_BYTES - 1, True), (OFF_LOOP_BYTES, False), (1 << 30, False)],
)
async def test_little_is_computed_here_and_much_in_a_thread(size: int, is_here: bool) -> None:
    ident = await off_loop(size, threading.get_ident)

    assert is_here == (ident == threading.get_ident())


@LOOP_OR_THREAD
async def test_arguments_go_in_and_the_result_comes_out(size: int) -> None:
    with assert_checkpoints():
        result = await off_loop(size, divmod, 7, 2)

    assert (3, 1) == result


@LOOP_OR_THREAD
async def test_an_error_comes_out_as_it_is(size: int) -> None:
    error = KeyError("x")

    def fail() -> None:
        raise error

    with pytest.raises(KeyError) as raised:
        await off_loop(size, fail)

    assert error is raised.value


@LOOP_OR_THREAD
async def test_who_is_cancelled_before_calls_nothing(size: int) -> None:
    called: list[int] = []

    with trio.CancelScope() as scope:
        scope.cancel()
        await off_loop(size, called.append, 1)

    assert scope.cancelled_caught
    assert [] == called


async def test_what_has_begun_ends_and_its_result_counts() -> None:
    begun, go_on = threading.Event(), threading.Event()
    results: list[bool] = []

    def compute() -> bool:
        begun.set()
        return go_on.wait(30)

    async def call() -> None:
        with scope:
            results.append(await off_loop(OFF_LOOP_BYTES, compute))

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await trio.to_thread.run_sync(begun.wait)
        scope.cancel()
        await wait_all_tasks_blocked()
        before = list(results)
        go_on.set()

    assert ([], [True]) == (before, results)


async def test_no_more_threads_compute_than_there_are_processors() -> None:
    go_on = threading.Event()
    running: list[int] = []
    processors = os.cpu_count() or 1

    async with trio.open_nursery() as nursery:
        for number in range(processors + 2):
            nursery.start_soon(
                off_loop, OFF_LOOP_BYTES, partial(_note_and_wait, running, go_on.wait, number)
            )
        while len(running) < processors:
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()
        meanwhile = len(running)
        disk_is_free = await trio.to_thread.run_sync(lambda: True)
        go_on.set()

    assert (processors, True) == (meanwhile, disk_is_free)
    assert processors + 2 == len(running)


def _note_and_wait(running: list[int], wait: Callable[[], object], number: int) -> None:
    running.append(number)
    wait()


def test_every_run_of_trio_has_threads_of_its_own() -> None:
    def run() -> int:
        return trio.run(off_loop, OFF_LOOP_BYTES, divmod, 7, 2)[0]

    assert [3, 3] == [run(), run()]
