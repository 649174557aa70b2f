"""The demo's page of delays, as it is drawn."""

from __future__ import annotations

import re

import pytest

from demo.analysis import Analysis
from demo.delays_view import DelaysView
from demo.flights_view import FlightsView
from support.demo_results import put_delays
from support.shown import Shown
from trionet.dashboard.drawing._cells import ASCII, UNICODE, Glyphs
from trionet.dashboard.drawing._export import records
from trionet.dashboard.model._model import Model
from trionet.dashboard.views import all_views


def shown(
    analysis: Analysis, width: int = 120, height: int = 30, glyphs: Glyphs = UNICODE
) -> Shown:
    views = [DelaysView(analysis), *all_views()]
    return Shown(Model(), DelaysView.name, width, height, glyphs, views=views)


def some() -> Analysis:
    """Delays of two days, of which the second is shown."""
    analysis = Analysis(windows="1 day")
    put_delays(analysis.board, 1, "AA", "MIA", delay_mean=500.0)
    put_delays(analysis.board, 2, "UA", "ORD", delay_mean=12.0)
    put_delays(analysis.board, 2, "EV", "RIC", delay_mean=90.0, seats=None, plane_years_mean=None)
    nobody = {"departed": 0, "late": 0, "delay_mean": None, "delay_p90": None, "delay_max": None}
    put_delays(analysis.board, 2, "B6", "BOS", flights=1, arrival_delay_mean=None, **nobody)
    return analysis


def test_it_has_every_route_of_the_newest_window_the_worst_first() -> None:
    text = shown(some()).text

    rows = [line.split()[:2] for line in text.splitlines() if " EWR-" in line]
    assert [["EV", "EWR-RIC"], ["UA", "EWR-ORD"], ["B6", "EWR-BOS"]] == rows
    assert "2013-01-02: 21 flights, 1 cancelled, 51 min late on average" in text
    assert "Spark: is starting" in text
    assert "! 90 min" in text
    assert "! 12 min" not in text


@pytest.mark.parametrize("size", [(100, 30), (120, 40), (200, 60)], ids=str)
def test_the_details_of_a_route_have_whole_names_beside_their_values(size: tuple[int, int]) -> None:
    page = shown(some(), *size)
    page.ui.shows_details = True
    page.press("j")

    assert re.search(r" bad weather departed +0\b", page.text)
    assert re.search(r" arrival delay mean +-\d min\b", page.text)


def test_a_carrier_is_found_and_another_order_chosen() -> None:
    page = shown(some())
    page.type("/ua")
    assert "EWR-RIC" not in page.text
    assert "EWR-ORD" in page.press("esc")
    page.type(":sort carrier asc")

    rows = [line.split()[0] for line in page.text.splitlines() if " EWR-" in line]
    assert ["B6", "EV", "UA"] == rows


def test_exported_a_row_has_all_that_spark_has_reported() -> None:
    page = shown(some())
    page.press("j")
    place = page.ui.current
    assert place.table is not None

    [row] = [row for row in records(place.table, place.rows) if row["carrier"] == "UA"]

    assert {
        "carrier": "UA",
        "route": "EWR-ORD",
        "flights": 10,
        "departed": 10,
        "late": 2,
        "delay_mean": 12.0,
        "delay_p90": 30,
        "delay_max": 77,
        "arrival_delay_mean": -1.5,
        "bad_weather_departed": 0,
        "bad_weather_delay_mean": None,
        "seats": 1500,
        "plane_years_mean": 9.6,
        "start": "2013-01-02T05:00:00Z",
        "end": "2013-01-03T05:00:00Z",
    } == row


def test_before_the_first_window_is_over_it_says_what_it_waits_for() -> None:
    text = shown(Analysis(windows="1 day")).text

    assert "Spark reports 1 day at a time, once it is over; none is yet." in text


def test_it_says_why_there_are_no_delays_or_none_any_more() -> None:
    why = "no delays by Spark: there is no Java"
    ended = some()
    ended.obstacle = "there is no Java"

    assert why in shown(Analysis(obstacle="there is no Java")).text
    assert why in shown(ended).text
    assert "EWR-ORD" in shown(ended).text


@pytest.mark.parametrize(("width", "height"), [(60, 15), (80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_it_fits_every_screen(width: int, height: int, glyphs: Glyphs) -> None:
    text = shown(some(), width, height, glyphs).text
    lines = text.splitlines()

    assert height == len(lines)
    assert max(map(len, lines)) <= width
    assert "EWR-ORD" in text
    assert text.isascii() or glyphs is UNICODE


def test_its_key_belongs_to_no_other_page() -> None:
    keys = [FlightsView.key, *(view.key for view in all_views())]

    assert DelaysView.key not in keys
