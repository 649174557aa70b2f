"""Which flights are sent together, and when. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from demo.dataset import Flight

#: Flights that become due within this time are sent together.
TICK_SECONDS = 0.01
#: More than so many are never under way.
FLIGHTS_MAX = 1000


class Timetable:
    """The flights after the first one, as they become due.

    Args:
        first: the flight that the replay begins with, at 0 seconds.
        rest: those after it.
        speed: how much faster than in 2013; infinite for as fast as possible, then all are due.
    """

    def __init__(self, first: Flight, rest: Iterator[Flight], speed: float) -> None:
        self._first = first
        self._rest = rest
        self._speed = speed
        self._next = next(rest, None)

    @property
    def due(self) -> float | None:
        """When the next flight leaves, in seconds; None if there is none any more."""
        return None if self._next is None else self._seconds(self._next)

    def take(self, seconds: float) -> list[Flight]:
        """The flights that leave up to a time or within a tick after it.

        A caller that is late takes all that has become due meanwhile, up to :data:`FLIGHTS_MAX`.
        """
        taken: list[Flight] = []
        while (flight := self._next) is not None and len(taken) < FLIGHTS_MAX:
            if self._seconds(flight) > seconds + TICK_SECONDS:
                break
            taken.append(flight)
            self._next = next(self._rest, None)
        return taken

    def _seconds(self, flight: Flight) -> float:
        return (flight.scheduled - self._first.scheduled) / self._speed
