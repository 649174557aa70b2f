from __future__ import annotations

import json

from demo.board import Board
from support.demo_results import put_delays as add


def test_before_the_first_window_closes_there_is_nothing_to_say() -> None:
    board = Board()

    assert ("", [], 0, 0) == (board.headline(), board.worst(), board.results, board.windows)
    assert [] == list(board.rows)


def test_the_headline_is_of_all_flights_of_the_newest_window() -> None:
    board = Board()
    add(board, 1, "UA", "ORD", delay_mean=500.0)
    add(board, 2, "UA", "ORD", flights=12, departed=10, delay_mean=4.0)
    add(
        board,
        2,
        "AA",
        "MIA",
        departed=30,
        flights=30,
        delay_mean=12.0,
        bad_weather_departed=5,
        bad_weather_delay_mean=40.0,
    )

    assert (
        "2013-01-02: 42 flights, 2 cancelled, 10 min late on average, the 5 in bad weather 40 min"
    ) == board.headline()
    assert (3, 2) == (board.results, board.windows)


def test_a_late_record_of_an_older_window_changes_nothing_but_the_counts() -> None:
    board = Board()
    add(board, 2, "UA", "ORD")
    before = board.headline(), board.worst()
    add(board, 1, "UA", "ORD", delay_mean=500.0)

    assert before == (board.headline(), board.worst())
    assert (2, 2) == (board.results, board.windows)


def test_what_is_repeated_counts_once() -> None:
    board = Board()
    add(board, 1, "UA", "ORD")
    before = board.headline()
    add(board, 1, "UA", "ORD")

    assert (before, 1) == (board.headline(), board.results)


def test_the_worst_routes_are_shown_without_those_that_hardly_anyone_flew() -> None:
    board = Board()
    add(board, 1, "UA", "ORD", delay_mean=40.4, delay_p90=121, departed=23)
    add(board, 1, "EV", "RIC", delay_mean=90.0, departed=2)
    add(board, 1, "B6", "BOS", delay_mean=20.0, plane_years_mean=None, seats=None)
    add(board, 1, "AA", "MIA", delay_mean=10.0)
    add(board, 1, "DL", "ATL", delay_mean=5.0)

    first, second, third = board.worst()

    assert (
        "UA EWR-ORD   40 min on average, one in ten 121 min or more; 23 flights, 1500 seats,"
        " planes 10 years old"
    ) == first
    assert (
        "B6 EWR-BOS   20 min on average, one in ten 30 min or more; 10 flights, 0 seats" == second
    )
    assert third.startswith("AA EWR-MIA")


def test_a_window_that_begins_within_a_day_has_its_hour() -> None:
    board = Board()
    key = b'{"start": "2013-01-01T11:00:00Z"}'
    value = {
        "start": "2013-01-01T11:00:00Z",
        "flights": 1,
        "departed": 0,
        "delay_mean": None,
        "bad_weather_departed": 0,
        "bad_weather_delay_mean": None,
    }
    board.add(key, json.dumps(value).encode())

    assert "2013-01-01 06:00: 1 flight, 1 cancelled" == board.headline()
