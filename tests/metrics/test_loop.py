from __future__ import annotations

from time import perf_counter

import pytest
import trio
import trio.lowlevel

from trionet.metrics._loop import LoopMonitor


def busy(seconds: float) -> None:
    """Hold the loop."""
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


async def test_a_loop_that_waits_is_idle() -> None:
    with LoopMonitor() as monitor:
        await trio.sleep(0.05)

        statistics = monitor.statistics()

    assert 0.5 < statistics.idle_ratio <= 1
    assert 0.04 < statistics.idle_seconds <= statistics.seconds
    assert 0 < statistics.passes


async def test_a_loop_that_is_held_is_neither_idle_nor_quick() -> None:
    with LoopMonitor() as monitor:
        await trio.lowlevel.checkpoint()
        busy(0.05)
        await trio.lowlevel.checkpoint()

        statistics = monitor.statistics()

    assert statistics.idle_ratio < 0.5
    assert 50_000 <= statistics.lag_max_us
    assert statistics.lag_p50_us <= statistics.lag_p99_us <= statistics.lag_max_us


async def test_every_pass_counts() -> None:
    with LoopMonitor() as monitor:
        before = monitor.statistics().passes
        for _ in range(100):
            await trio.lowlevel.checkpoint()

        assert 100 == monitor.statistics().passes - before


async def test_after_clearing_nothing_of_before_is_reported() -> None:
    with LoopMonitor() as monitor:
        await trio.lowlevel.checkpoint()
        busy(0.05)
        await trio.lowlevel.checkpoint()

        monitor.clear()
        await trio.lowlevel.checkpoint()
        statistics = monitor.statistics()

    assert 1 == statistics.passes
    assert statistics.lag_max_us < 50_000
    assert statistics.seconds < 0.05
    assert 0 == statistics.idle_seconds


async def test_outside_the_block_nothing_is_measured() -> None:
    with LoopMonitor() as monitor:
        await trio.lowlevel.checkpoint()
    passes = monitor.statistics().passes

    await trio.lowlevel.checkpoint()

    assert passes == monitor.statistics().passes


async def test_a_monitor_leaves_with_the_error_of_its_block() -> None:
    async def fail() -> None:
        with LoopMonitor():
            await trio.lowlevel.checkpoint()
            raise KeyError("x")

    for _ in range(2):
        with pytest.raises(KeyError):
            await fail()
