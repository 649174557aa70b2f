"""docs/performance.md has the tables of benchmarks that there are, and says when they were made."""

from __future__ import annotations

import re
from datetime import date

import pytest

from bench.__main__ import BENCHMARKS
from bench.measured import Figure, Measured
from bench.page import PAGE, section, with_table

PLACES = re.findall(
    r"<!-- bench: ([\w-]+) -->\n(.*?)<!-- end: \1 -->", PAGE.read_text("utf-8"), re.DOTALL
)


def test_each_place_is_that_of_a_benchmark() -> None:
    names = [name for name, _ in PLACES]

    assert [] == [name for name in names if name not in BENCHMARKS]
    assert len(names) == len(set(names)) > 0


@pytest.mark.parametrize(("name", "text"), PLACES)
def test_each_table_says_when_and_where_it_was_measured(name: str, text: str) -> None:
    assert text.startswith("\n| case | side |")
    assert re.search(
        r"^Measured on \d{4}-\d\d-\d\d: .+;\ntrionet .+ cores, .+\.$", text, re.MULTILINE
    )


def test_a_table_takes_the_place_of_the_one_before() -> None:
    measured = Measured("a title", (Figure("rate", "requests/s"),))
    measured.add("1 connection", "trionet", {"rate": 1234.0})
    measured.skipped["uvloop"] = "it is not installed"
    page = "Before.\n\n<!-- bench: echo -->\nold\n<!-- end: echo -->\n\nAfter.\n"

    actual = with_table(page, "echo", section(measured, date(2026, 11, 22)))

    assert actual.startswith("Before.\n\n<!-- bench: echo -->\n\n| case | side | requests/s |\n")
    assert actual.endswith("\n<!-- end: echo -->\n\nAfter.\n")
    assert "| 1 connection | trionet | 1,234 |" in actual
    assert "Measured on 2026-11-22: a title;\n" in actual
    assert "Not there: uvloop, it is not installed." in actual
    assert "old" not in actual


def test_a_benchmark_without_a_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place for echo"):
        with_table("Nothing.\n", "echo", "table")
