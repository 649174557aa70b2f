from __future__ import annotations

import math
from datetime import datetime

import pytest

from demo.windows import as_factor, from_factor, windows_for

HOUR, DAY = 3_600, 86_400


@pytest.mark.parametrize(
    ("speed", "length", "name"),
    [
        (1, 600, "10 minutes"),
        (600, 600, "10 minutes"),
        (601, HOUR, "1 hour"),
        (10_000, 6 * HOUR, "6 hours"),
        (86_400, DAY, "1 day"),
        (100_000, 7 * DAY, "7 days"),
        (1e9, 28 * DAY, "28 days"),
        (math.inf, 28 * DAY, "28 days"),
    ],
)
def test_the_replay_closes_at_most_one_window_a_second(
    speed: float, length: int, name: str
) -> None:
    actual = windows_for(speed)

    assert (length, name) == (actual.length, actual.name)


def test_a_window_waits_for_a_second_of_the_replay_or_longer() -> None:
    speeds = [1.0, 600.0, 5_000.0, 86_400.0, 28.0 * DAY]

    assert [] == [speed for speed in speeds if windows_for(speed).delay / speed < 1]


@pytest.mark.parametrize("speed", [1, 3_600, 86_400, 100_000, math.inf])
def test_the_first_window_begins_with_the_year_in_new_york(speed: float) -> None:
    year = int(datetime.fromisoformat("2013-01-01T00:00-05:00").timestamp())

    actual = windows_for(speed)

    assert 0 == (year - actual.offset) % actual.length


@pytest.mark.parametrize("speed", [0.5, 86_400.0, math.inf])
def test_a_child_learns_the_speed(speed: float) -> None:
    assert speed == from_factor(as_factor(speed))
