from __future__ import annotations

from collections.abc import Collection

import attrs
import pytest

from trionet.dashboard.drawing._table import Column, Table
from trionet.dashboard.model._model import Model
from trionet.dashboard.ui._ordering import ROWS_PER_STEP
from trionet.dashboard.ui._view import View
from trionet.dashboard.ui._view_state import ViewState


@attrs.frozen
class Row:
    name: str
    size: int | None = None
    owner: str | None = None


class Rows(View):
    """A view of rows that a test changes."""

    name = "rows"
    title = "Rows"
    help = "Rows."

    def __init__(self, rows: Collection[Row], sort: str | None = None) -> None:
        self.rows = rows
        self.version = 0
        self.sort = sort

    def change(self, *rows: Row) -> None:
        self.rows = rows
        self.version += 1

    def table(self, model: Model) -> Table[Row]:
        return Table(
            (
                Column("name", "NAME", 8, lambda row: row.name),
                Column("size", "SIZE", 8, lambda row: row.size, right=True),
                Column("bar", "BAR", 8, draw=lambda row, width, pen: []),
                Column("owner", "OWNER", 8, lambda row: row.owner),
                Column("only_exported", "", 0, lambda row: f"secret of {row.name}"),
            ),
            self.rows,
            key=lambda row: row.name,
            sort=self.sort,
            version=self.version,
        )


ROWS = (Row("b", 2, "Ann"), Row("a", None, "Bob"), Row("c", 3, "ann"), Row("d", 1))


def look(place: ViewState, *, is_paused: bool = False) -> str:
    place.update(Model(), is_paused=is_paused)
    return "".join(row.name for row in place.rows)


def place(*, sort: str | None = None, height: int = 10) -> tuple[ViewState, Rows]:
    view = Rows(ROWS, sort)
    found = ViewState(view)
    found.height = height
    look(found)
    return found, view


def test_rows_keep_the_models_order_unless_one_is_named() -> None:
    assert "bacd" == look(place()[0])
    assert "abcd" == look(place(sort="name")[0])


def test_numbers_begin_with_the_largest_texts_with_the_first_and_nothing_comes_last() -> None:
    found, _ = place()

    found.sort_by("size")
    assert "cbda" == look(found)
    found.reverse()
    assert "dbca" == look(found)
    found.sort_by("name")
    assert "abcd" == look(found)
    found.sort_by("owner", descending=True)
    assert "cabd" == look(found)


def test_the_next_column_is_one_that_can_be_sorted_by() -> None:
    found, _ = place()
    seen = []
    for _ in range(4):
        found.sort_by_next()
        seen.append(found.sorted_by)

    assert ["name", "size", "owner", "only_exported"] == seen


def test_a_click_sorts_and_another_turns_the_order_around() -> None:
    found, _ = place()

    found.sort_by_click("size")
    assert "cbda" == look(found)
    found.sort_by_click("size")
    assert "dbca" == look(found)
    found.sort_by_click("bar")
    assert "size" == found.sorted_by


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("", "bacd"),
        ("  ", "bacd"),
        ("ann", "bc"),
        ("ANN", "bc"),
        ("ann c", "c"),
        ("!ann", "ad"),
        ("!ann !b", "d"),
        ("!", "bacd"),
        ("3", ""),  # numbers are not searched
        ("nobody", ""),
        ("secret", ""),  # nor is what no screen shows
    ],
)
def test_a_filter_lets_through_what_has_all_words(words: str, rows: str) -> None:
    found, _ = place()

    found.filter = words

    assert rows == look(found)


def test_the_cursor_stays_with_its_row() -> None:
    found, view = place()
    found.move(2)
    assert "c" == found.selected.name

    view.change(Row("z"), Row("c"), *ROWS)
    look(found)
    assert ("c", 1) == (found.selected.name, found.cursor)


def test_on_top_it_stays_on_top() -> None:
    found, view = place()

    view.change(Row("z"), *ROWS)
    look(found)

    assert "z" == found.selected.name


def test_where_its_row_is_gone_it_is_on_the_next_one() -> None:
    found, view = place()
    found.move(1)

    view.change(Row("b"), Row("c"), Row("d"))
    look(found)
    assert "c" == found.selected.name
    view.change()
    look(found)
    assert found.selected is None
    assert 0 == found.cursor


def test_what_is_chosen_is_on_the_screen() -> None:
    view = Rows([Row(f"{number:03}") for number in range(100)])
    found = ViewState(view)
    found.height = 10
    look(found)

    for step, cursor, top in [
        (0, 0, 0),
        (9, 9, 0),
        (1, 10, 1),
        (500, 99, 90),
        (-5, 94, 90),
        (-5, 89, 89),
        (-500, 0, 0),
    ]:
        found.move(step)
        assert (cursor, top) == (found.cursor, found.top)


def test_no_line_is_empty_while_there_are_rows() -> None:
    view = Rows([Row(f"{number:03}") for number in range(100)])
    found = ViewState(view)
    found.height = 10
    look(found)
    found.move(99)

    view.change(*[Row(f"{number:03}") for number in range(20)])
    look(found)

    assert (19, 10) == (found.cursor, found.top)


def test_a_pause_keeps_the_rows_but_sorts_and_filters_them() -> None:
    found, view = place()

    view.change(Row("z", 9))
    assert "bacd" == look(found, is_paused=True)
    found.filter = "ann"
    assert "bc" == look(found, is_paused=True)
    found.sort_by("size")
    assert "cb" == look(found, is_paused=True)
    found.filter = ""
    assert "z" == look(found)


def many(*names: str) -> tuple[Row, ...]:
    """More rows than one step filters, and these; each of another list has another size."""
    return (*(Row(f"x{number}") for number in range(2 * ROWS_PER_STEP)), *map(Row, names))


def test_rows_of_before_stay_until_all_of_the_new_ones_are_filtered() -> None:
    chosen, view = place()
    view.change(*many("a", "b"))
    chosen.filter = "a"
    assert "bacd" == look(chosen)
    steps = 0
    while chosen.is_updating:
        chosen.step()
        steps += 1
    assert 2 == steps
    assert "a" == "".join(row.name for row in chosen.rows)

    view.change(*many("aa"))
    assert "a" == look(chosen)
    assert "a" == look(chosen)
    assert "aa" == look(chosen)


def test_a_list_that_changes_all_the_time_is_shown_nevertheless() -> None:
    chosen, view = place()
    chosen.filter = "a"
    found = []
    for number in range(12):
        view.change(*many(f"a{number}"))
        found.append(look(chosen))

    assert ["bacd", "bacd", *["a0"] * 3, *["a3"] * 3, *["a6"] * 3, "a9"] == found


def test_another_filter_begins_anew_with_the_newest_rows() -> None:
    chosen, view = place()
    view.change(*many("a"))
    chosen.filter = "a"
    look(chosen)
    view.change(*many("b"))
    look(chosen)
    chosen.filter = "b"
    chosen.update_fully(Model())

    assert "b" == "".join(row.name for row in chosen.rows)
    assert not chosen.is_updating


def test_who_goes_back_to_the_filter_of_before_has_the_newest_rows() -> None:
    chosen, view = place()
    view.change(Row("a"))
    look(chosen)
    view.change(*many("b"))
    chosen.filter = "b"
    look(chosen)
    chosen.filter = ""

    assert look(chosen).endswith("b")


def test_a_pause_lets_a_filter_come_to_its_end() -> None:
    chosen, view = place()
    view.change(*many("a"))
    look(chosen)
    view.change(Row("later"))
    chosen.filter = "a"

    assert ["a"] == [look(chosen, is_paused=True) for _ in range(3)][2:]
