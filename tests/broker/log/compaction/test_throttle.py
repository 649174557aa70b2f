"""How fast a cleaning may read and write."""

from __future__ import annotations

from trionet.broker.log.compaction._throttle import Throttle


class Clock:
    """Time that passes only while the throttle waits, or when told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def test_transfers_wait_until_they_fit_the_rate() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock.time, clock.sleep)

    for _ in range(10):
        throttle.note(500)

    assert 105.0 == clock.now


def test_short_waits_are_put_together() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock.time, clock.sleep)

    for _ in range(100):
        throttle.note(10)

    assert abs(1.0 - sum(clock.waits)) < 0.05
    assert min(clock.waits) >= 0.05


def test_idle_time_is_not_saved_up() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock.time, clock.sleep)
    clock.now += 3600

    throttle.note(2000)

    assert [2.0] == clock.waits


def test_long_waits_are_divided() -> None:
    """``time.sleep`` accepts no infinite time."""
    clock = Clock()
    throttle = Throttle(1, clock.time, clock.sleep)

    throttle.note(200_000)

    assert [86_400.0, 86_400.0, 27_200.0] == clock.waits
