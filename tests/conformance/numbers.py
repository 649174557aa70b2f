"""Which tests bear which numbers: read from their docstrings, without running anything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from conformance.lines import PARTS

TESTS = Path(__file__).resolve().parent.parent

_NUMBER = r"[A-Z]\d+"
_TICKET = r"(?:KAFKA|KIP)-\d+"
# What a docstring begins with: numbers, and Kafka's tickets between them, up to a colon or the end.
_NUMBERS = re.compile(rf"((?:{_NUMBER}|{_TICKET})(?:, (?:{_NUMBER}|{_TICKET}))*)[.:](?:\s|$)")
_LOOKS_LIKE_NUMBERS = re.compile(rf"(?:{_TICKET}, )*{_NUMBER}\b")
# Most files have none, and need not be parsed.
_IN_SOURCE = re.compile(rf'"""\s*{_LOOKS_LIKE_NUMBERS.pattern}')

KNOWN = {line.number for lines in PARTS.values() for line in lines}


class Bearer(NamedTuple):
    """A test, and what its docstring begins with.

    Attributes:
        name: the file below ``tests`` and the function.
        numbers: the lines that it says it shows.
        is_legible: whether what looks like numbers could be read.
    """

    name: str
    numbers: list[str]
    is_legible: bool


def numbers_of(docstring: str) -> list[str]:
    """The numbers that a docstring begins with; tickets are not among them."""
    match = _NUMBERS.match(docstring)
    return re.findall(rf"\b{_NUMBER}\b", match[1]) if match is not None else []


@cache
def bearers() -> list[Bearer]:
    """Every test with something that looks like a number."""
    return [found for path in sorted(TESTS.rglob("test_*.py")) for found in _in_file(path)]


def _in_file(path: Path) -> Iterator[Bearer]:
    source = path.read_text("utf-8")
    if not _IN_SOURCE.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node) or ""
        if node.name.startswith("test_") and _LOOKS_LIKE_NUMBERS.match(docstring):
            name = f"{path.relative_to(TESTS).as_posix()}::{node.name}"
            numbers = numbers_of(docstring)
            yield Bearer(name, numbers, bool(numbers))


def names_by_number() -> dict[str, list[str]]:
    """The tests of each number that is known."""
    found: dict[str, list[str]] = {}
    for bearer in bearers():
        for number in bearer.numbers:
            found.setdefault(number, []).append(bearer.name)
    return {number: found[number] for number in KNOWN & set(found)}
