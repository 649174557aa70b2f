"""The rate and the end of a run."""

from __future__ import annotations

import signal

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from trionet.cli.bench._runs import GROUP_SECONDS, Pace, Plan, Run


def test_few_records_are_due_one_by_one() -> None:
    pace = Pace(rate=4, began=10.0)

    due = [(pace.due_at, pace.take()) for _ in range(4)]

    assert [(10.0, 1), (10.25, 1), (10.5, 1), (10.75, 1)] == due


def test_many_records_are_due_in_groups() -> None:
    pace = Pace(rate=100_000, began=0.0)

    due = [(pace.due_at, pace.take()) for _ in range(3)]

    assert [100, 100, 100] == [count for _, count in due]
    assert [0.0, GROUP_SECONDS, 2 * GROUP_SECONDS] == pytest.approx([at for at, _ in due])


@given(rate=st.floats(0.01, 10_000_000), groups=st.integers(1, 3000))
def test_no_record_is_lost_or_added_by_rounding(rate: float, groups: int) -> None:
    pace = Pace(rate, began=5.0)

    taken = sum(pace.take() for _ in range(groups))

    assert abs(taken - rate * (pace.due_at - 5.0)) < 1.01


async def test_progress_lines_have_the_times_of_their_intervals(
    autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run("records", Plan(), 0.3)
    run.begin()

    with trio.move_on_after(1):
        await run.report_progress()

    times = [line.partition(" s:")[0] for line in capsys.readouterr().err.splitlines()]
    assert ["0.3", "0.6", "0.9"] == times


async def test_a_signal_ends_the_last_interval(autojump_clock: MockClock) -> None:
    run = Run("records", Plan(rate=0.1), 0)
    tally = run.begin()
    assert run.pace is not None
    run.pace.take()
    tally.count(1, 10, run.now())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run.wait_for_last_interval)
        await trio.sleep(2)
        run.stopping.set()

    assert 2 == pytest.approx(tally.seconds)


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
