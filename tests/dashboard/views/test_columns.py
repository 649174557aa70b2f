"""The columns of all tables of the dashboard."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from trionet.dashboard import views
from trionet.dashboard.drawing._table import Column, layout
from trionet.dashboard.ui._screen import COLUMNS_MIN


def tables() -> Iterator[Any]:
    """The columns of each table, by where they are defined."""
    for module in pkgutil.iter_modules(views.__path__):
        for name, value in vars(importlib.import_module(f"{views.__name__}.{module.name}")).items():
            if isinstance(value, tuple) and value and isinstance(value[0], Column):
                yield pytest.param(value, id=f"{module.name}.{name}")


@pytest.mark.parametrize("columns", list(tables()))
def test_what_is_never_left_out_fits_the_smallest_screen(columns: Sequence[Column[Any]]) -> None:
    placed = layout(columns, COLUMNS_MIN)

    assert [each for each in columns if each.width and not each.priority] == [
        column for column, cells in placed if not column.priority and cells >= column.width
    ]


@pytest.mark.parametrize("columns", list(tables()))
def test_a_title_is_no_wider_than_its_column(columns: Sequence[Column[Any]]) -> None:
    assert [] == [each.title for each in columns if each.width and len(each.title) > each.width]
