from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from demo.dataset import FLIGHTS, data_file, flights

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour\n"
)
# Three days in the order of the file: of January, of December, of the rest; not by their schedule.
LATER = "2013,1,1,NA,1030,NA,NA,1100,NA,B6,2,NA,JFK,BOS,NA,187,10,30,2013-01-01T15:00:00Z\n"
EARLIER = (
    "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z\n"
)
NEXT_DAY = "2013,1,2,1,1,0,2,2,0,DL,3,N1,LGA,ATL,100,762,0,1,2013-01-02T05:00:00Z\n"


def packed(folder: Path, text: str) -> Path:
    path = folder / "flights.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("flights.csv", text)
    return path


def test_flights_come_by_their_schedule_also_where_the_file_has_another_order(
    tmp_path: Path,
) -> None:
    path = packed(tmp_path, HEADER + NEXT_DAY + LATER + EARLIER)

    actual = [(flight.clock, flight.carrier) for flight in flights(path)]

    assert [("2013-01-01 05:15", "UA"), ("2013-01-01 10:30", "B6"), ("2013-01-02 00:01", "DL")] == (
        actual
    )


def test_the_schedule_is_counted_in_seconds_of_the_world_not_of_new_york(tmp_path: Path) -> None:
    path = packed(tmp_path, HEADER + EARLIER)

    [flight] = flights(path)

    assert 1357035300 == flight.scheduled  # 2013-01-01 10:15 UTC


def test_a_value_is_json_with_numbers_and_nulls(tmp_path: Path) -> None:
    path = packed(tmp_path, HEADER + LATER)

    [flight] = flights(path)
    actual = json.loads(flight.value)

    assert HEADER.strip().split(",") == list(actual)
    assert (None, 1030, None, "B6") == (
        actual["dep_time"],
        actual["sched_dep_time"],
        actual["tailnum"],
        actual["carrier"],
    )


@pytest.mark.soak
def test_the_package_holds_the_whole_year_in_order() -> None:
    try:
        path = data_file()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))

    times = [flight.scheduled for flight in flights(path)]

    assert FLIGHTS == len(times)
    assert times == sorted(times)
