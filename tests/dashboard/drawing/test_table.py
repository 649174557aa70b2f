"""Tables as lines: which columns fit, how wide they are, and the selected row."""

from __future__ import annotations

import attrs
import pytest
from rich.style import Style

from trionet.dashboard.drawing import _palette as palette
from trionet.dashboard.drawing._cells import FINE, UNICODE, Glyphs, Line, Pen
from trionet.dashboard.drawing._graphs import meter, stacked_bar
from trionet.dashboard.drawing._table import Column, Table, heading_line, layout, row_line
from trionet.dashboard.drawing._table import trend_column as trend
from trionet.dashboard.model._figures import History

PHASES = ("queue", "local", "remote")


@attrs.define
class Row:
    topic: str = "orders"
    note: str | None = None
    size: int = 1
    history: History = attrs.field(factory=History)


COLUMNS: tuple[Column[Row], ...] = (
    Column("topic", "TOPIC", 10, grow=1),
    Column("size", "SIZE", 6, right=True),
    Column("note", "NOTE", 8, priority=2, grow=1),
)


def widths(
    width: int,
    *rows: Row,
    columns: tuple[Column[Row], ...] = COLUMNS,
    longest: dict[str, int] | None = None,
) -> dict[str, int]:
    return {column.name: cells for column, cells in layout(columns, width, rows, longest)}


def test_spare_width_is_shared_among_the_columns_that_grow() -> None:
    assert {"topic": 20, "size": 6, "note": 18} == widths(47)
    assert {"topic": 20, "size": 6, "note": 18} == widths(47, Row("orders", "short"))


def test_a_text_that_would_be_cut_gets_what_others_do_not_need() -> None:
    assert {"topic": 25, "size": 6, "note": 13} == widths(47, Row("t" * 25, "short"))
    assert {"topic": 33, "size": 6, "note": 5} == widths(47, Row("t" * 40, "short"))
    assert {"topic": 33, "size": 6, "note": 5} == widths(47, Row("t" * 40))
    assert {"topic": 20, "size": 6, "note": 18} == widths(47, Row("t" * 40, "n" * 40))


def test_of_a_text_only_as_much_is_measured_as_the_screen_shows() -> None:
    longest: dict[str, int] = {}
    widths(47, Row("日" * 100_000), longest=longest)

    assert 2 * 46 == longest["topic"]


def test_columns_do_not_move_when_their_longest_texts_have_gone() -> None:
    longest: dict[str, int] = {}
    before = widths(47, Row("t" * 25, "n"), longest=longest)

    assert before == widths(47, Row("t"), longest=longest)


def test_the_mark_of_the_order_has_room_beside_the_title() -> None:
    columns = (Column[Row]("topic", "TOPIC", 5), Column[Row]("size", "SIZE", 4))

    placed = layout(columns, 20, sort="topic")

    assert [6, 4] == [cells for _, cells in placed]
    assert (
        " TOPIC▲ SIZE"
        == text(heading_line(placed, Pen(20, 24, UNICODE), "topic", descending=False)).rstrip()
    )


def test_a_chart_keeps_its_share_of_the_width() -> None:
    columns = (COLUMNS[0], Column[Row]("bar", "BAR", 10, None, draw=lambda *_: [], grow=1))

    assert {"topic": 20, "bar": 20} == widths(42, Row("t" * 40), columns=columns)


def test_the_title_of_a_trend_has_the_time_that_it_covers() -> None:
    column: Column[Row] = trend("size", 12, priority=1)
    row = Row()
    for number in range(30):
        row.history.add(2.0 * number, number)

    def heading(width: int) -> str:
        pen = Pen(40, 24, UNICODE)
        return text(heading_line([(column, width)], pen, None, descending=False, rows=[row]))

    assert " TREND 22 s" == heading(12).rstrip()
    assert " TREND" == heading(8).rstrip()
    assert " TREND 58 s" == heading(39).rstrip()


def text(line: Line) -> str:
    return "".join(segment.text for segment in line)


def styles(column: Column[Row], glyphs: Glyphs, row: Row | None = None) -> list[Style | None]:
    """The styles of the only cell of the selected row, between its margin and its end."""
    found: Table[Row] = Table([column], [], key=lambda row: row.topic)
    line = row_line(found, [(column, 9)], row or Row(), Pen(11, 24, glyphs), is_selected=True)
    assert palette.CURSOR == line[0].style == line[-1].style
    assert " " == line[0].text[:1] == line[-1].text[-1:]
    return [segment.style for segment in line[1:-1]]


def test_phases_keep_their_colours_in_the_selected_row() -> None:
    parts = Column[Row]("p", "P", 9, None, draw=lambda _, w, pen: stacked_bar([1, 1, 1], w, pen))
    names = Column[Row](
        "p", "P", 9, None, draw=lambda _, w, pen: stacked_bar([1, 1, 1], w, pen, PHASES)
    )

    assert [palette.CHARTS_ON_BAR[each] for each in palette.PARTS[:3]] == styles(parts, UNICODE)
    assert list(palette.LABELS[:3]) == styles(names, FINE)


@pytest.mark.parametrize("glyphs", [UNICODE, FINE], ids=["blocks", "fine"])
def test_so_do_other_charts(glyphs: Glyphs) -> None:
    column = Column[Row]("p", "P", 9, None, draw=lambda _, w, pen: meter(0.5, w, pen))

    assert {*styles(column, glyphs)} <= {*palette.CHARTS_ON_BAR.values()}


def test_charts_are_never_reversed_in_the_selected_row() -> None:
    """The gaps of a bar would be its bars."""
    assert not any(style.reverse for style in palette.CHARTS_ON_BAR.values())


def test_texts_have_colours_that_are_legible_in_the_selected_row() -> None:
    column = Column[Row]("note", "NOTE", 9, style=lambda _: palette.ALARM)
    dim = Column[Row]("note", "NOTE", 9, style=lambda _: palette.DIM)

    assert [palette.TEXTS_ON_BAR[palette.ALARM]] == styles(column, UNICODE, Row(note="wrong"))
    assert {palette.CURSOR} >= {*styles(dim, UNICODE, Row(note="wrong"))}
