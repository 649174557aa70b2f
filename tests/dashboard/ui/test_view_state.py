"""Rows with a cursor, sorted, and filtered some at a time."""

from __future__ import annotations

from collections.abc import Collection

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.dashboard.drawing._table import Column, Table
from trionet.dashboard.model._model import Model
from trionet.dashboard.ui import _view_state as ordering
from trionet.dashboard.ui._view import View
from trionet.dashboard.ui._view_state import ROWS_PER_STEP, Order, Ordering, ViewState


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
                Column("bar", "BAR", 8, None, draw=lambda row, width, pen: []),
                Column("owner", "OWNER", 8, lambda row: row.owner, is_optional=True),
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


def test_an_optional_column_is_there_as_soon_as_a_row_has_a_value_for_it() -> None:
    found, view = place()

    def shown() -> list[str]:
        look(found)
        assert found.table is not None
        return [column.name for column in found.table.columns if column.width]

    assert ["name", "size", "bar", "owner"] == shown()
    view.change(Row("d", 1), Row("e"))
    assert ["name", "size", "bar"] == shown()
    found.sort_by("owner")
    assert "de" == look(found)
    view.change(Row("d", 1, "Bob"), Row("e"))
    assert ["name", "size", "bar", "owner"] == shown()


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


@attrs.frozen
class Owned:
    name: str
    owner: str | None


class Looked:
    """A table that counts how often its rows are looked at."""

    def __init__(self, rows: list[Owned]) -> None:
        self.count = 0
        self.table = Table(
            (Column("name", "NAME", 8, self._name), Column("owner", "OWNER", 8, self._owner)),
            rows,
            key=lambda row: row.name,
        )

    def _name(self, row: Owned) -> str:
        self.count += 1
        return row.name

    def _owner(self, row: Owned) -> str | None:
        self.count += 1
        return row.owner


def ordered(rows: list[Owned], order: Order) -> list[Owned]:
    found = Ordering(rows, Looked(rows).table, order)
    while not found.is_done:
        found.step()
    return found.rows


def test_a_step_looks_at_a_few_rows_however_many_there_are() -> None:
    rows = [Owned(f"row {number}", None) for number in range(20 * ROWS_PER_STEP)]
    looked = Looked(rows)
    found = Ordering(rows, looked.table, Order(filter="7"))
    steps = []
    while not found.is_done:
        before = looked.count
        found.step()
        steps.append(looked.count - before)

    assert 20 == len(steps)
    # Of two columns, with a look at which kind of values each has.
    assert max(steps) <= 4 * ROWS_PER_STEP
    assert [row for row in rows if "7" in row.name] == found.rows


def test_what_is_not_filtered_is_there_at_once() -> None:
    rows = [Owned(f"{number:06}", None) for number in reversed(range(3 * ROWS_PER_STEP))]
    found = Ordering(rows, Looked(rows).table, Order("name"))
    found.step()

    assert found.is_done
    assert rows[::-1] == found.rows


texts = st.text("ab!", max_size=3)


@given(
    st.lists(st.builds(Owned, texts, st.none() | texts), max_size=12),
    st.sampled_from([None, "name", "owner", "unknown"]),
    st.booleans(),
    st.text("ab! ", max_size=6),
    st.integers(1, 5),
)
def test_rows_in_steps_are_those_of_one_step(
    rows: list[Owned], sort: str | None, descending: bool, filter: str, step: int
) -> None:
    order = Order(sort, descending, filter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "ROWS_PER_STEP", step)
        in_steps = ordered(rows, order)

    assert ordered(rows, order) == in_steps


def test_a_column_without_values_in_some_step_is_searched_in_the_next() -> None:
    rows = [Owned("a", None)] * ROWS_PER_STEP + [Owned("a", "Ann")]

    assert [Owned("a", "Ann")] == ordered(rows, Order(filter="ann"))
