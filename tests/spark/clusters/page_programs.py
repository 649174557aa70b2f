"""The programs of the page on clusters that need more than the environment of the tests."""

from __future__ import annotations

from test_docs import BLOCKS, ROOT

PAGE = "docs/howto/run-spark-jobs-on-clusters.md"


def program_below(title: str) -> str:
    """The one in Python below a heading."""
    lines = (ROOT / PAGE).read_text("utf-8").splitlines()
    first = next(number for number, line in enumerate(lines, 1) if line.lstrip("# ") == title)
    found = (each for each in BLOCKS if each.page == PAGE and each.line > first)
    return next(each.text for each in found if each.language == "python")
