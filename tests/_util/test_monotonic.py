"""The monotonic clock goes on while a tool has stopped that of the program."""

from __future__ import annotations

import runpy
import time

import freezegun
import pytest

from trionet._util import _monotonic as monotonic
from trionet.metrics._loop import LoopMonitor


@pytest.mark.parametrize("at", ["2001-01-01", "2040-01-01"])
def test_it_goes_on_when_time_stands_still(at: str) -> None:
    before, before_ns = time.perf_counter(), time.perf_counter_ns()

    with freezegun.freeze_time(at):
        seconds, ns = monotonic.perf_counter(), monotonic.perf_counter_ns()
        assert time.perf_counter() == time.perf_counter() != before

    assert before <= seconds <= time.perf_counter()
    assert before_ns <= ns <= time.perf_counter_ns()


def test_it_goes_on_too_when_it_is_imported_then() -> None:
    before = time.perf_counter()

    with freezegun.freeze_time("2001-01-01"):
        imported = runpy.run_path(monotonic.__file__)

    assert before <= imported["perf_counter"]() <= time.perf_counter()


async def test_a_monitor_of_the_loop_outlives_a_time_that_has_been_stopped() -> None:
    with LoopMonitor() as monitor:
        with freezegun.freeze_time("2001-01-01"):
            pass
        during = monitor.statistics()

    assert during.seconds < 1_000
