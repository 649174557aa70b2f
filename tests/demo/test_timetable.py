from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from demo.dataset import Flight
from demo.timetable import FLIGHTS_MAX, Timetable

FIRST = Flight(1000, {})


def timetable(*seconds: int, speed: float = 1.0) -> Timetable:
    """Flights that leave so many seconds after the first."""
    flights: Iterator[Flight] = iter([Flight(1000 + each, {}) for each in seconds])
    return Timetable(FIRST, flights, speed)


def left_at(flights: list[Flight]) -> list[int]:
    return [flight.scheduled - 1000 for flight in flights]


def test_who_is_in_time_takes_what_is_due_now() -> None:
    flights = timetable(5, 5, 9)

    assert 5.0 == flights.due
    assert [5, 5] == left_at(flights.take(5.0))
    assert 9.0 == flights.due


def test_who_is_late_takes_all_that_became_due_meanwhile() -> None:
    assert [5, 6, 9] == left_at(timetable(5, 6, 9, 20).take(12.0))


def test_what_is_due_within_a_tick_leaves_together() -> None:
    # A minute of 2013 at a day in a second takes less than a millisecond.
    flights = timetable(60, 120, 3600, speed=86_400.0)

    assert [60, 120] == left_at(flights.take(flights.due or 0))


def test_before_the_next_is_due_there_is_nothing_to_take() -> None:
    assert [] == timetable(5).take(4.0)


def test_after_the_last_flight_none_is_due() -> None:
    flights = timetable(5)
    flights.take(5.0)

    assert flights.due is None
    assert [] == flights.take(math.inf)


def test_as_fast_as_possible_all_are_due_at_once_but_leave_in_bounded_groups() -> None:
    flights = timetable(*range(FLIGHTS_MAX + 3), speed=math.inf)

    assert 0.0 == flights.due
    assert FLIGHTS_MAX == len(flights.take(0.0))
    assert 0.0 == flights.due
    assert 3 == len(flights.take(0.0))


@pytest.mark.parametrize("speed", [0.5, 3600.0])
def test_the_speed_divides_the_time(speed: float) -> None:
    assert 7200 / speed == timetable(7200, speed=speed).due
