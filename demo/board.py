"""The newest delays as they come out of Spark, and the lines that show them. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from demo.windows import EASTERN

#: So many routes are shown, the worst first.
ROUTES_SHOWN = 3
#: A route with fewer departures in a window says nothing.
DEPARTED_MIN = 3

Result = Mapping[str, Any]


class Board:
    """The results of the newest window, and how many there were in all.

    Attributes:
        results: how many different ones have come; what is repeated counts once.
        windows: how many windows they are of.
        rows: the results of the newest window.
        version: grows with each record.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self._starts: set[str] = set()
        self._newest = ""
        self._rows: dict[bytes, Result] = {}
        self.version = 0

    @property
    def rows(self) -> Collection[Result]:
        return self._rows.values()

    @property
    def results(self) -> int:
        return len(self._seen)

    @property
    def windows(self) -> int:
        return len(self._starts)

    def add(self, key: bytes, value: bytes) -> None:
        """Take one record of the topic of results."""
        result = json.loads(value)
        self.version += 1
        start = result["start"]  # as text they are in the order of time
        self._seen.add(key)
        self._starts.add(start)
        if start > self._newest:
            self._newest, self._rows = start, {}
        if start == self._newest:
            self._rows[key] = result

    def headline(self) -> str:
        """All flights of the newest window together; nothing before there is one."""
        if not self._rows:
            return ""
        rows = self.rows
        flights, departed, bad = (
            sum(row[name] for row in rows)
            for name in ("flights", "departed", "bad_weather_departed")
        )
        some = "1 flight" if flights == 1 else f"{flights} flights"
        said = f"{_clock(self._newest)}: {some}, {flights - departed} cancelled"
        if departed:
            said += f", {minutes(_mean(rows, 'delay_mean', 'departed'))} late on average"
        if bad:
            late = minutes(_mean(rows, "bad_weather_delay_mean", "bad_weather_departed"))
            said += f", the {bad} in bad weather {late}"
        return said

    def worst(self) -> list[str]:
        """The carriers and routes of the newest window that have the longest delays."""
        rows = [row for row in self.rows if row["departed"] >= DEPARTED_MIN]
        rows.sort(key=lambda row: (-row["delay_mean"], row["carrier"], row["origin"], row["dest"]))
        return [_route(row) for row in rows[:ROUTES_SHOWN]]


def _route(row: Result) -> str:
    years = row["plane_years_mean"]
    age = "" if years is None else f", planes {years:.0f} years old"
    return (
        f"{row['carrier']} {row['origin']}-{row['dest']}  {minutes(row['delay_mean']):>7} on"
        f" average, one in ten {minutes(row['delay_p90'])} or more; {row['departed']} flights,"
        f" {row['seats'] or 0} seats{age}"
    )


def _mean(rows: Iterable[Result], mean: str, count: str) -> float | None:
    """The mean of all, from those of the groups."""
    pairs = [(row[mean], row[count]) for row in rows if row[count]]
    return sum(value * n for value, n in pairs) / sum(n for _, n in pairs) if pairs else None


def minutes(value: float | None) -> str:
    """A delay in whole minutes."""
    return "-" if value is None else f"{value:.0f} min"


def _clock(start: str) -> str:
    """When a window begins by New York's clocks; the hour only if it is not midnight."""
    local = datetime.fromisoformat(start).astimezone(EASTERN)
    return local.strftime("%Y-%m-%d" if (local.hour, local.minute) == (0, 0) else "%Y-%m-%d %H:%M")
