"""docs/howto/install.md says what pyproject.toml says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGE = (ROOT / "docs" / "howto" / "install.md").read_text("utf-8")


def test_the_systems_of_the_classifiers_are_those_of_the_page() -> None:
    """A classifier is a promise: none for a system on which nobody has tried the package."""
    systems = {
        each.rpartition(" :: ")[2].replace("MacOS", "macOS")
        for each in PROJECT["classifiers"]
        if each.startswith("Operating System")
    }
    named = re.search(r"^pip install \. +# in a checkout; (.*), CPython", PAGE, re.MULTILINE)

    assert named
    assert systems == set(named[1].split(" or "))
    assert "Windows is not supported" in PAGE
