"""The page of the admin client names every call, its parameters and every type."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from trionet.client import admin
from trionet.client.admin import Admin

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "admin.md"
CALL = re.compile(r"^\| `(\w+)\(([^)]*)\)`", re.MULTILINE)


def parameters(function: object) -> list[str]:
    """As the page writes them: what must be named has an equals sign."""
    assert callable(function)
    found = list(inspect.signature(function).parameters.values())[1:]
    return [each.name + "=" * (each.kind is each.KEYWORD_ONLY) for each in found]


def test_every_call_stands_in_the_table_with_its_parameters() -> None:
    told = {name: re.findall(r"\w+=?", given) for name, given in CALL.findall(PAGE.read_text())}

    calls = {
        name: parameters(function)
        for name, function in inspect.getmembers(Admin, inspect.isfunction)
        if not name.startswith("_")
    }
    assert calls == told


def test_every_type_is_named() -> None:
    text = PAGE.read_text()

    assert [] == [name for name in admin.__all__ if f"`{name}" not in text]
