"""The demo's own page of the dashboard: the replay, the group, and the delays by Spark. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment

from demo.consumers import GROUP
from demo.dataset import FIRST_DAY
from demo.figures import Figures
from demo.front import Shown
from trionet.dashboard.drawing import _palette as palette
from trionet.dashboard.drawing import _units as units
from trionet.dashboard.drawing._cells import Line, Pen, wrapped
from trionet.dashboard.drawing._graphs import meter, samples, trend
from trionet.dashboard.ui._view import View
from trionet.dashboard.views._partition_map import partition_map

if TYPE_CHECKING:
    from trionet.dashboard.model._model import Model

DAYS = 365
LABEL_CELLS = 14
NUMBER_CELLS = 18


class FlightsView(View):
    """See the module.

    Args:
        story: what is shown.
    """

    name = "flights"
    key = "f"
    section: ClassVar[str | None] = "group"
    section_key: object = GROUP
    title = "Flights of 2013"
    help = (
        "A producer replays the flights that left New York in 2013 into the broker of this "
        "process. A group of consumers reads them; every few seconds one joins or leaves, and the "
        "group divides the partitions anew. When the demo ends, what was consumed is compared with "
        "what was produced, record by record. The lag of the position counts what the consumers "
        "were not given yet, the committed one also what would be read again if all of them "
        "started anew; they commit every five seconds. End to end is from send to the hands of a "
        "consumer. Where there are Java and PySpark, Spark computes the delays meanwhile, from "
        "topic to topic; with --telemetry a second Spark makes minutes of the broker's request "
        "log, which 9 shows. The other pages show the broker: their keys are in the line on top."
    )

    def __init__(self, story: Shown) -> None:
        self._story = story

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:
        story, figures = self._story, self._story.figures
        yield [pen.text(f" {story.title}", palette.DIM)]
        if figures is None:
            yield [pen.text(" Producer and consumers are starting.", palette.DIM)]
            return
        yield pen.rule("Replay", _span(figures, pen))
        yield from _replay(figures, pen)
        yield from _group(model, pen)
        if story.analysis.is_shown:
            all_of_them = ": d has every route" if story.analysis.board.rows else ""
            yield pen.rule(f"Delays by Spark{all_of_them}")
            yield from _texts(story.analysis.lines(), pen, is_note=bool(story.analysis.obstacle))
        if story.telemetry.is_shown:
            yield pen.rule("Telemetry by Spark")
            yield from _texts(story.telemetry.lines(), pen, is_note=story.telemetry.has_failed)
        yield []
        hint = "q ends it: then every record is checked. 1 to 9 show the broker, ? explains."
        yield [pen.text(f" {hint}", palette.DIM)]


def _span(figures: Figures, pen: Pen) -> str:
    """The time that the charts cover."""
    times = figures.times[-samples(_room(pen), pen) :]
    return f"last {units.duration(times[-1] - times[0])}" if len(times) > 1 else ""


def _replay(figures: Figures, pen: Pen) -> Iterator[Line]:
    year = meter(_share_of_year(figures.clock), _room(pen), pen)
    yield _line("New York", year, figures.clock, pen)
    for label, name, text in (
        ("Produced", "produced_rate", f"{figures.produced_rate:,.0f}/s {figures.produced:>9,}"),
        ("Consumed", "consumed_rate", f"{figures.consumed_rate:,.0f}/s {figures.consumed:>9,}"),
        ("Lag, position", "lag", f"{figures.lag:,}"),
        ("Lag, committed", "commit_lag", f"{figures.commit_lag:,}"),
        ("End to end p99", "delay_p99", _milliseconds(figures.delay_p99)),
    ):
        yield _line(label, trend(figures.histories[name], _room(pen), pen), text, pen)


def _group(model: Model, pen: Pen) -> Iterator[Line]:
    """A line for each consumer, with its partitions among all."""
    row = model.groups.get(GROUP)
    if row is not None:
        count = row.members or 0
        who = f"{count} consumer{'' if count == 1 else 's'}"
        yield pen.rule(f"Group: {who}, generation {row.generation or 0}")
        yield from partition_map(row, pen)


def _texts(texts: Iterable[str], pen: Pen, *, is_note: bool) -> Iterator[Line]:
    for text in texts:
        for line in wrapped(text, pen.width - 2, pen.glyphs):
            yield [pen.text(f" {line}", palette.NOTE if is_note else palette.PLAIN)]


def _line(label: str, chart: Line, text: str, pen: Pen) -> Line:
    return [
        pen.label(f" {label}", LABEL_CELLS + 2, palette.BOLD),
        *chart,
        Segment(" "),
        pen.cell(text, NUMBER_CELLS, right=True),
    ]


def _room(pen: Pen) -> int:
    return max(0, pen.width - LABEL_CELLS - NUMBER_CELLS - 4)


def _share_of_year(clock: str) -> float:
    """How much of the year is over, to the day."""
    return (date.fromisoformat(clock[:10]) - FIRST_DAY).days / DAYS if clock else 0.0


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} ms"
