from __future__ import annotations

import math
import re

import pytest
import trio
from trio.testing import MockClock

from trionet.client.consumer.coordinator._loop_watchdog import watching_loop


async def handle_slowly(clock: MockClock, seconds: float) -> None:
    clock.jump(seconds)  # as time.sleep would
    await trio.lowlevel.checkpoint()


async def test_who_held_the_loop_is_named_and_for_how_long(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    with watching_loop(1.0):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(handle_slowly, mock_clock, 4.0)

    assert 1 == len(caplog.records)
    assert "handle_slowly blocked the event loop for 4.0 s" in caplog.text
    assert re.search(r"test_loop_watchdog\.py:\d+ in handle_slowly: ", caplog.text)


async def test_the_last_step_before_all_wait_is_seen(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    with watching_loop(1.0):
        await handle_slowly(mock_clock, 4.0)
        with trio.move_on_after(0):
            await trio.sleep_forever()

    assert 1 == len(caplog.records)


async def test_short_steps_and_waits_are_nothing_to_speak_of(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    with watching_loop(1.0):
        await handle_slowly(autojump_clock, 0.9)
        await trio.sleep(100)

    assert [] == caplog.records


async def test_a_task_that_has_ended_is_named_still(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def end() -> None:
        await trio.lowlevel.checkpoint()
        mock_clock.jump(3)

    with watching_loop(1.0):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end)

    assert "end blocked the event loop for 3.0 s: " in caplog.text


async def test_many_watchers_hear_of_it_once(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    with watching_loop(5.0), watching_loop(1.0):
        await handle_slowly(mock_clock, 4.0)

    assert 1 == len(caplog.records)


async def test_nothing_watches_after_the_block(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    with watching_loop(1.0):
        with watching_loop(0.5):
            pass
        await handle_slowly(mock_clock, 4.0)
    await handle_slowly(mock_clock, 4.0)

    assert 1 == len(caplog.records)


async def test_a_member_that_does_not_ask_gets_no_reason(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    with watching_loop(math.inf):
        await handle_slowly(mock_clock, 4.0)

    assert [] == caplog.records
