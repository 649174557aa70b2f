"""One API, as it is seen."""

from __future__ import annotations

from support.dashboard_model import busy_model
from support.shown import Shown
from trionet.dashboard.drawing._cells import ASCII, UNICODE
from trionet.dashboard.drawing._export import as_text
from trionet.dashboard.drawing._pen import Frame, Pen
from trionet.dashboard.views._apis import heat_lines


def heat(*spreads: dict[int, int] | None, width: int = 22) -> list[str]:
    pen = Pen(width, 10, UNICODE)
    return as_text(Frame(width, list(heat_lines(spreads, pen)))).splitlines()


def test_latencies_are_warmer_where_more_requests_were_look_by_look() -> None:
    lines = heat({0: 10}, {0: 9, 2: 1}, None, {}, {2: 5, 3: 5})

    assert [
        "   8.0 ms          ▒",
        "   4.0 ms       ░  ▒",
        "   2.0 ms",
        "   1.0 ms      ██",
    ] == [line.rstrip() for line in lines]


def test_the_newest_looks_are_those_that_there_is_room_for() -> None:
    spreads = [{0: 1}] * 50 + [{1: 1}] * 4

    assert ["   2.0 ms       ████", "   1.0 ms ██████"] == [
        line.rstrip() for line in heat(*spreads, width=22)
    ]


def test_without_requests_there_is_a_sentence() -> None:
    assert ["no requests"] == [line.strip() for line in heat(None, {})]


def test_an_api_is_shown_with_its_phases_its_latencies_and_how_they_changed() -> None:
    shown = Shown(busy_model(), "apis", 120, 60)
    text = shown.press("enter")

    assert "── Total time by read ──" in text
    assert "░" in text.partition("by read")[2]
    assert Shown(busy_model(), "apis", 120, 60, ASCII).press("enter").isascii()
