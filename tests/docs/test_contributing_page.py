"""docs/contributing.md names every benchmark."""

from __future__ import annotations

import re
from pathlib import Path

from bench.__main__ import BENCHMARKS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "contributing.md"


def test_every_benchmark_is_named_in_the_order_of_the_help() -> None:
    named = re.findall(r"^\| `([a-z-]+)` \| \S.* \|$", PAGE.read_text("utf-8"), re.MULTILINE)

    assert list(BENCHMARKS) == named
