"""Tables on a page: each stands between two comments, and is replaced when it is measured anew."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from bench.measured import Measured

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"


def put_on_page(name: str, measured: Measured, day: date, page: Path = PAGE) -> None:
    """Put what a benchmark has found in its place.

    Raises:
        ValueError: the page has no place for it.
    """
    page.write_text(with_table(page.read_text("utf-8"), name, section(measured, day)), "utf-8")


def section(measured: Measured, day: date) -> str:
    """The table, and below it when and where it was measured."""
    table, _, below = measured.as_markdown().partition("\n\nMeasured: ")
    skipped = "".join(f"\nNot there: {side}, {why}." for side, why in measured.skipped.items())
    return f"{table}\n\nMeasured on {day.isoformat()}: {below}{skipped}\n"


def with_table(page: str, name: str, table: str) -> str:
    """The text of a page with a table in its place; raises ValueError if it has no place."""
    begin, end = f"<!-- bench: {name} -->\n", f"<!-- end: {name} -->\n"
    found = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", page, re.DOTALL)
    if found is None:
        raise ValueError(f"the page has no place for {name}: {begin.strip()} ... {end.strip()}")
    return f"{page[: found.start()]}{begin}\n{table}\n{end}{page[found.end() :]}"
