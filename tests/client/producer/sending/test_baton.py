"""Whose turn it is: the sending task sleeps while another makes turns, and never for ever."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trionet.client.producer.sending._sender import PAUSE_SECONDS, Baton


class SendingTask:
    """A task that stands by once, and notes when it was woken."""

    def __init__(self) -> None:
        self.baton = Baton(trio.current_time)
        self.woken_at: float | None = None

    async def run(self) -> None:
        await self.baton.stand_by()
        self.woken_at = trio.current_time()


@pytest.fixture
async def sending(nursery: trio.Nursery) -> SendingTask:
    task = SendingTask()
    nursery.start_soon(task.run)
    await wait_all_tasks_blocked()
    return task


async def test_a_task_that_stands_by_is_woken_for_work(sending: SendingTask) -> None:
    sending.baton.call()
    await wait_all_tasks_blocked()
    assert sending.woken_at is not None


async def test_it_is_not_woken_while_a_turn_is_under_way(sending: SendingTask) -> None:
    """That turn sees the work."""
    sending.baton.is_held = True
    sending.baton.call()
    await wait_all_tasks_blocked()
    assert sending.woken_at is None


async def test_work_that_is_left_is_taken_up_at_once(sending: SendingTask) -> None:
    sending.baton.leave(has_work=True)
    await wait_all_tasks_blocked()
    assert sending.woken_at is not None


async def test_without_work_it_sleeps_on_for_a_pause(
    sending: SendingTask, mock_clock: MockClock
) -> None:
    """One pause from the first time: what is left later does not put it off."""
    sending.baton.leave(has_work=False)
    mock_clock.jump(PAUSE_SECONDS * 0.9)
    await wait_all_tasks_blocked()
    sending.baton.leave(has_work=False)
    await wait_all_tasks_blocked()
    assert sending.woken_at is None

    mock_clock.jump(PAUSE_SECONDS * 0.2)
    await wait_all_tasks_blocked()
    assert sending.woken_at == pytest.approx(PAUSE_SECONDS * 1.1)


async def test_work_ends_the_pause(sending: SendingTask) -> None:
    sending.baton.leave(has_work=False)
    sending.baton.call()
    await wait_all_tasks_blocked()
    assert sending.woken_at is not None


@pytest.mark.parametrize("how", ["end", "leave"])
async def test_the_end_lets_it_go(sending: SendingTask, how: str) -> None:
    """Also if a task leaves the turns after that."""
    if how == "leave":
        sending.baton.has_ended = True
        sending.baton.leave(has_work=False)
    else:
        sending.baton.end()
    await wait_all_tasks_blocked()
    assert sending.baton.has_ended
    assert sending.woken_at is not None


async def test_without_a_task_that_stands_by_nothing_happens() -> None:
    baton = Baton(trio.current_time)
    baton.call()
    baton.leave(has_work=True)
    baton.end()
    await trio.lowlevel.checkpoint()
