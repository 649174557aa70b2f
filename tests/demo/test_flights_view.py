"""The demo's own page of the dashboard, as it is drawn."""

from __future__ import annotations

import attrs
import pytest

from demo.analysis import Analysis
from demo.consumers import GROUP
from demo.figures import Figures
from demo.flights_view import FlightsView
from demo.telemetry import Telemetry
from support.demo_figures import FIGURES
from trionet.dashboard.drawing._cells import ASCII, UNICODE, Glyphs
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import GroupRow, LagRow, MemberRow
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.views import all_views


@attrs.define
class Story:
    title: str = "the title"
    figures: Figures | None = FIGURES
    partitions: int = 3
    analysis: Analysis = attrs.field(factory=lambda: Analysis(obstacle="there is no Java"))
    telemetry: Telemetry = attrs.field(factory=lambda: Telemetry(is_shown=False))

    async def begun(self) -> None:
        raise AssertionError("a page waits for nothing")


def group() -> GroupRow:
    """Two consumers, of which the second has two partitions, one of them since the rebalance."""
    members = tuple(
        MemberRow(name, None, name, "/127.0.0.1", tuple(("flights", each) for each in owned))
        for name, owned in (("consumer-10", (1, 2)), ("consumer-9", (0,)))
    )
    lags = tuple(LagRow("flights", each, 10, 0, 12, 2, None) for each in range(3))
    return GroupRow(
        GROUP,
        "classic",
        "Stable",
        "consumer",
        generation=5,
        members=2,
        detail=members,
        lags=lags,
        moved=(("flights", 2),),
    )


def drawn(story: Story, width: int = 80, height: int = 24, glyphs: Glyphs = UNICODE) -> list[str]:
    ui = Ui([FlightsView(story), *all_views()], FlightsView.name)
    model = Model()
    model.groups.replace({GROUP: group()}, 1.0)
    frame = draw(ui, model, width, height, glyphs)
    return ["".join(segment.text for segment in line).rstrip() for line in frame.lines]


def test_it_shows_the_replay_the_group_and_why_there_are_no_delays() -> None:
    _, _, *lines, _ = drawn(Story())

    assert [
        " Flights of 2013",
        " the title",
        "── Replay ─────────────────────────────────────────────────────── last 250 ms ──",
        f" New York       {'█' * 22}{'░' * 22}   2013-07-02 17:05",
        f" Produced       {'▁█':>44}    912/s     2,699",
        f" Consumed       {'▁█':>44}    911/s     2,690",
        f" Lag, position  {'▁█':>44}                  9",
        f" Lag, committed {'▁█':>44}                898",
        f" End to end p99 {'█':>44}              12 ms",
        "── Group: 2 consumers, generation 5 ────────────────────────────────────────────",
        " member                 lag  flights",
        " consumer-9               2   0   ·   ·",
        " consumer-10              4   ·   1  +2",
        "── Delays by Spark ─────────────────────────────────────────────────────────────",
        " no delays by Spark: there is no Java",
        "",
        " q ends it: then every record is checked. 1 to 9 show the broker, ? explains.",
    ] == lines[:17]


@pytest.mark.parametrize(("width", "height"), [(60, 15), (80, 24), (120, 40), (200, 60)])
def test_it_fits_every_screen(width: int, height: int) -> None:
    lines = drawn(Story(), width, height)

    assert height == len(lines)
    assert max(map(len, lines)) <= width
    assert any(line.startswith(" consumer-9") for line in lines)


def test_without_unicode_it_is_ascii() -> None:
    lines = drawn(Story(analysis=Analysis()), glyphs=ASCII)

    assert "".join(lines).isascii()


def test_before_the_first_flight_it_says_that_it_starts() -> None:
    lines = drawn(Story(figures=None))

    assert " Producer and consumers are starting." in lines


def test_who_wants_no_spark_sees_nothing_of_it() -> None:
    lines = drawn(Story(analysis=Analysis(is_shown=False)))

    assert [] == [line for line in lines if "Spark" in line]


def test_its_key_belongs_to_no_other_page() -> None:
    assert [] == [view.name for view in all_views() if view.key == FlightsView.key]
