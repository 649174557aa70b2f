"""What the suites of Spark's own Kafka connector assert, line by line, and what of it holds here.

A line is one test of theirs in a few words. A test that shows the same of trionet begins its
docstring with the line's number, or numbers: ``RC4, RC5: ...``; any test below ``tests/spark`` may.
A line that cannot hold says why: most often Spark gives a source that is written in Python no way.
``python3 -m spark.agreement`` in the folder ``tests`` prints them all with their tests.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent

_NUMBER = r"[A-Z]{2}\d+"
_NUMBERS = re.compile(rf"({_NUMBER}(?:, {_NUMBER})*):")


class Line(NamedTuple):
    """One line of the list.

    Attributes:
        number: two letters of its suite, and its place there.
        about: what is asserted.
        reason: why it cannot hold, or what holds in its place; empty if a test must show it.
    """

    number: str
    about: str
    reason: str = ""


def _read() -> dict[str, list[Line]]:
    read = tomllib.loads((TESTS / "agreement.toml").read_text("utf-8"))
    reasons = read["reasons"]

    def line(number: str, texts: str | list[str]) -> Line:
        about, *reason = [texts] if isinstance(texts, str) else texts
        return Line(number, about, *(reasons.get(each, each) for each in reason))

    return {
        suite: [line(*each) for each in lines.items()] for suite, lines in read["suites"].items()
    }


#: The lines of each suite.
SUITES = _read()

#: Lines that no test shows yet. A line leaves this list with its first test.
OPEN: frozenset[str] = frozenset()


def numbers_of(docstring: str) -> list[str]:
    """The numbers that a docstring begins with."""
    match = _NUMBERS.match(docstring)
    return match[1].split(", ") if match is not None else []


@cache
def names_by_number() -> dict[str, list[str]]:
    """The tests of each number that a docstring below this folder begins with."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for number in numbers_of(ast.get_docstring(node) or ""):
                    name = f"{path.relative_to(TESTS).as_posix()}::{node.name}"
                    found.setdefault(number, []).append(name)
    return found


def report() -> str:
    """All lines, each with its tests or its reason."""
    tests = names_by_number()
    lines: list[str] = []
    for suite, of_suite in SUITES.items():
        lines.append(f"\n{suite}")
        for line in of_suite:
            shown = ", ".join(tests.get(line.number, [])) or line.reason or "open"
            lines.append(f"  {line.number:<5} {line.about}: {shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
