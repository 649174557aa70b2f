"""Signals end a run: with its results if there are any."""

from __future__ import annotations

import signal

import pytest
import trio
from trio.testing import MockClock

from trionet.cli.bench._plan import Plan
from trionet.cli.bench._run import Run


@pytest.mark.parametrize(
    ("has_begun", "numbers", "is_cut_short"),
    [
        (False, [signal.SIGINT], True),
        (True, [signal.SIGTERM], False),
        (True, [signal.SIGTERM, signal.SIGINT], True),
    ],
)
async def test_what_has_no_results_yet_is_not_waited_for(
    has_begun: bool, numbers: list[int], is_cut_short: bool, autojump_clock: MockClock
) -> None:
    run = Run("records", Plan(), 0)
    if has_begun:
        run.begin()
    send, receive = trio.open_memory_channel[int](2)
    for number in numbers:
        send.send_nowait(number)
    send.close()

    with trio.CancelScope() as scope:
        await run.watch(receive, scope)
        await trio.lowlevel.checkpoint()

    assert (is_cut_short, numbers[0]) == (scope.cancelled_caught, run.signal)
    assert has_begun == run.stopping.is_set()
