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


def has_place(name: str, page: Path = PAGE) -> bool:
    """Whether the page wants the figures of this benchmark."""
    return _place(page.read_text("utf-8"), name) is not None


def section(measured: Measured, day: date) -> str:
    """The table, and below it when and where it was measured."""
    table, _, below = measured.as_markdown().partition("\n\nMeasured: ")
    skipped = "".join(f"\nNot there: {side}, {why}." for side, why in measured.skipped.items())
    return f"{table}\n\nMeasured on {day.isoformat()}: {below}{skipped}\n"


def with_table(page: str, name: str, table: str) -> str:
    """The text of a page with a table in its place; raises ValueError if it has no place."""
    found = _place(page, name)
    if found is None:
        raise ValueError(f"the page has no place for {name}: {' ... '.join(_marks(name))}")
    begin, end = _marks(name)
    return f"{page[: found.start()]}{begin}\n\n{table}\n{end}{page[found.end() :]}"


def _place(page: str, name: str) -> re.Match[str] | None:
    begin, end = map(re.escape, _marks(name))
    return re.search(f"{begin}\n.*?{end}", page, re.DOTALL)


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- bench: {name} -->", f"<!-- end: {name} -->"
