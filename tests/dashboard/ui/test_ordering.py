"""The rows of a table that a filter lets through, some at a time."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.dashboard.drawing._table import Column, Table
from trionet.dashboard.ui import _ordering as ordering
from trionet.dashboard.ui._ordering import ROWS_PER_STEP, Order, Ordering


@attrs.frozen
class Row:
    name: str
    owner: str | None


class Looked:
    """A table that counts how often its rows are looked at."""

    def __init__(self, rows: list[Row]) -> None:
        self.count = 0
        self.table = Table(
            (Column("name", "NAME", 8, self._name), Column("owner", "OWNER", 8, self._owner)),
            rows,
            key=lambda row: row.name,
        )

    def _name(self, row: Row) -> str:
        self.count += 1
        return row.name

    def _owner(self, row: Row) -> str | None:
        self.count += 1
        return row.owner


def ordered(rows: list[Row], order: Order) -> list[Row]:
    found = Ordering(rows, Looked(rows).table, order)
    while not found.is_done:
        found.step()
    return found.rows


def test_a_step_looks_at_a_few_rows_however_many_there_are() -> None:
    rows = [Row(f"row {number}", None) for number in range(20 * ROWS_PER_STEP)]
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
    rows = [Row(f"{number:06}", None) for number in reversed(range(3 * ROWS_PER_STEP))]
    found = Ordering(rows, Looked(rows).table, Order("name"))
    found.step()

    assert found.is_done
    assert rows[::-1] == found.rows


texts = st.text("ab!", max_size=3)


@given(
    st.lists(st.builds(Row, texts, st.none() | texts), max_size=12),
    st.sampled_from([None, "name", "owner", "unknown"]),
    st.booleans(),
    st.text("ab! ", max_size=6),
    st.integers(1, 5),
)
def test_rows_in_steps_are_those_of_one_step(
    rows: list[Row], sort: str | None, descending: bool, filter: str, step: int
) -> None:
    order = Order(sort, descending, filter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "ROWS_PER_STEP", step)
        in_steps = ordered(rows, order)

    assert ordered(rows, order) == in_steps


def test_a_column_without_values_in_some_step_is_searched_in_the_next() -> None:
    rows = [Row("a", None)] * ROWS_PER_STEP + [Row("a", "Ann")]

    assert [Row("a", "Ann")] == ordered(rows, Order(filter="ann"))
