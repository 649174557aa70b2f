"""The delays by window, carrier and route in plain Python, from the files of the data set."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demo.dataset import Flight
from demo.windows import Windows

#: Start of the window, carrier, origin, destination.
Group = tuple[str, str, str, str]


def computed_delays(
    flights: Iterable[Flight], folder: Path, windows: Windows
) -> dict[Group, dict[str, Any]]:
    """What is known of each group, for the windows that are closed when the last flight is in."""
    planes = {row["tailnum"]: row for row in _rows(folder / "planes.csv")}
    weather = {(row["origin"], row["time_hour"]): row for row in _rows(folder / "weather.csv")}
    groups: dict[tuple[int, str, str, str], list[dict[str, Any]]] = defaultdict(list)
    newest = 0
    for flight in flights:
        newest = max(newest, flight.scheduled)
        start = flight.scheduled - (flight.scheduled - windows.offset) % windows.length
        fields = flight.fields
        group = (start, flight.carrier, str(fields["origin"]), str(fields["dest"]))
        plane = planes.get(str(fields["tailnum"]), {})
        sky = weather.get((str(fields["origin"]), str(fields["time_hour"])), {})
        groups[group].append({**fields, "plane": plane, "is_bad": _is_bad(sky)})
    return {
        (_text(start), carrier, origin, dest): _statistics(rows)
        | {"end": _text(start + windows.length)}
        for (start, carrier, origin, dest), rows in groups.items()
        if start + windows.length <= newest - windows.delay
    }


def _statistics(rows: list[dict[str, Any]]) -> dict[str, Any]:
    departed = [row for row in rows if row["dep_delay"] is not None]
    delays = sorted(row["dep_delay"] for row in departed)
    bad = [row["dep_delay"] for row in departed if row["is_bad"]]
    arrivals = [row["arr_delay"] for row in rows if row["arr_delay"] is not None]
    seats = [int(row["plane"]["seats"]) for row in departed if row["plane"]]
    years = [
        row["year"] - int(row["plane"]["year"])
        for row in rows
        if row["plane"] and row["plane"]["year"] != "NA"
    ]
    return {
        "flights": len(rows),
        "departed": len(departed),
        "late": sum(delay > 15 for delay in delays),
        "delay_mean": _mean(delays),
        "delay_p90": delays[math.ceil(0.9 * len(delays)) - 1] if delays else None,
        "delay_max": delays[-1] if delays else None,
        "arrival_delay_mean": _mean(arrivals),
        "bad_weather_departed": len(bad),
        "bad_weather_delay_mean": _mean(bad),
        "seats": sum(seats) if seats else None,
        "plane_years_mean": _mean(years),
    }


def _mean(values: list[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _is_bad(sky: dict[str, str]) -> bool:
    return bool(sky) and (
        (sky["precip"] != "NA" and float(sky["precip"]) > 0)
        or (sky["visib"] != "NA" and float(sky["visib"]) < 3)
    )


def _text(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
