"""Numbers of things."""

from __future__ import annotations

import pytest

from trionet._util._counted import counted


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1234, "1,234 records")],
)
def test_one_is_not_many(number: int, text: str) -> None:
    assert text == counted(number, "record")
