"""Results of the demo's delays, as Spark writes them."""

from __future__ import annotations

import json

from demo.board import Board


def put_delays(board: Board, day: int, carrier: str, dest: str, **others: object) -> None:
    """Give a board one result: of a day in January, from EWR."""
    key = {
        "start": f"2013-01-{day:02}T05:00:00Z",
        "end": f"2013-01-{day + 1:02}T05:00:00Z",
        "carrier": carrier,
        "origin": "EWR",
        "dest": dest,
    }
    result = {
        "flights": 10,
        "departed": 10,
        "late": 2,
        "delay_mean": 4.0,
        "delay_p90": 30,
        "delay_max": 77,
        "arrival_delay_mean": -1.5,
        "bad_weather_departed": 0,
        "bad_weather_delay_mean": None,
        "seats": 1500,
        "plane_years_mean": 9.6,
        **others,
    }
    board.add(json.dumps(key).encode(), json.dumps({**key, **result}).encode())
