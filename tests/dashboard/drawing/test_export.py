from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from xml.etree import ElementTree

import attrs
import pytest

from support.dashboard_model import HOSTILE_NAMES, busy_model, full_model
from trionet.dashboard.drawing import _palette as palette
from trionet.dashboard.drawing._cells import UNICODE, Frame
from trionet.dashboard.drawing._export import as_csv, as_html, as_json, as_svg, as_text
from trionet.dashboard.drawing._table import Column, Table
from trionet.dashboard.drawing._themes import LOOKS, THEMES
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.views import all_views


@attrs.frozen
class Row:
    name: str
    size: int | None


TABLE: Table[Row] = Table(
    (
        Column("name", "NAME", 4, lambda row: row.name),
        Column("size", "SIZE", 4, lambda row: row.size, lambda size: f"{size} B"),
        Column("hidden", "HIDDEN", 0, lambda row: len(row.name)),
        Column("chart", "CHART", 4, None, draw=lambda row, width, pen: []),
    ),
    [Row("ä", 1), Row("=1+1", None)],
    key=lambda row: row.name,
)


def frame(name: str = "billing") -> Frame:
    return draw(Ui(all_views(), "connections"), full_model(name), 100, 30, UNICODE)


def test_a_table_is_values_not_what_is_shown() -> None:
    assert [
        {"name": "ä", "size": 1, "hidden": 1},
        {"name": "=1+1", "size": None, "hidden": 4},
    ] == json.loads(as_json(TABLE, TABLE.rows))


def test_no_spreadsheet_takes_a_name_for_a_formula() -> None:
    rows = list(csv.reader(io.StringIO(as_csv(TABLE, TABLE.rows))))

    assert [["name", "size", "hidden"], ["ä", "1", "1"], ["'=1+1", "", "4"]] == rows


def test_names_in_csv_do_nothing_to_a_terminal_and_reach_a_program_unchanged() -> None:
    rows = [Row(name, 1) for name in HOSTILE_NAMES]

    shown = as_csv(TABLE, rows, is_terminal=True)
    data = list(csv.reader(io.StringIO(as_csv(TABLE, rows), newline="")))

    assert 1 + len(rows) == len(shown.splitlines())
    assert shown.replace("\n", "").isprintable()
    assert {name.lstrip("'") for name, *_ in data[1:]} == set(HOSTILE_NAMES)


def test_a_picture_is_well_formed_whatever_names_there_are() -> None:
    for name in HOSTILE_NAMES:
        tree = ElementTree.fromstring(as_svg(frame(name)))

        assert "svg" in tree.tag


def test_a_picture_is_the_same_each_time() -> None:
    assert as_svg(frame()) == as_svg(frame())


def test_a_page_shows_names_as_text() -> None:
    page = as_html(frame("<script>alert(1)</script>"))

    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_text_has_no_blanks_at_its_ends() -> None:
    text = as_text(draw(Ui(all_views(), "overview"), busy_model(), 80, 24, UNICODE))

    assert all(line == line.rstrip() for line in text.split("\n"))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("picture", [as_svg, as_html])
def test_a_picture_has_the_colours_of_its_theme(
    picture: Callable[[Frame, str], str], name: str
) -> None:
    text = picture(frame(), name)

    found = {theme: LOOKS[theme].texts[palette.KEY] in text for theme in THEMES}
    assert {theme: theme == name for theme in THEMES} == found
