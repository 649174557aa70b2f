"""`python3 tests conformance`: which lines of Kafka's network layer have tests, and which do not.

Ends with 1 when a core line has neither a test nor a reason, or when tests bear the numbers of
fewer than 95 in 100 of the lines beyond.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from fractions import Fraction

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.lines import BEYOND, CORE, PARTS, Line, Weight
from conformance.numbers import names_by_number

BEYOND_SHARE_MIN = Fraction(95, 100)

Tests = Mapping[str, list[str]]


def share(lines: list[Line], tests: Tests) -> Fraction:
    """The part of some lines whose numbers are borne by a test."""
    return Fraction(sum(line.number in tests for line in lines), len(lines))


def complaints(parts: Mapping[str, list[Line]], tests: Tests) -> list[str]:
    """What is not as it must be."""
    lines = [line for part in parts.values() for line in part]
    found = [
        f"{line.number} is core, and has neither a test nor a reason: {line.about}"
        for line in lines
        if line.weight is CORE and line.number not in tests and not line.reason
    ]
    beyond = [line for line in lines if line.weight is BEYOND]
    if beyond and share(beyond, tests) < BEYOND_SHARE_MIN:
        found.append(
            f"{float(share(beyond, tests)):.1%} of the lines beyond have a test; "
            f"wanted: {float(BEYOND_SHARE_MIN):.0%}"
        )
    return found


def table_of(title: str, lines: list[Line], tests: Tests) -> Table:
    """One part of the list."""
    table = Table(title=title, title_justify="left", expand=True)
    for heading in ("line", "", "about"):
        table.add_column(heading, no_wrap=heading != "about")
    table.add_column("shown by", ratio=1, overflow="fold")
    for line in lines:
        table.add_row(line.number, line.weight.value, line.about, _shown_by(line, tests))
    return table


def _shown_by(line: Line, tests: Tests) -> Text:
    names = tests.get(line.number)
    if names:
        return Text("\n".join(names))
    if line.reason:
        return Text(f"no test: {line.reason}", style="yellow")
    return Text("missing", style="red")


def summary(parts: Mapping[str, list[Line]], tests: Tests) -> Table:
    """The counts, part by part and weight by weight."""
    table = Table(title="Summary", title_justify="left")
    for heading in ("part", "weight", "lines", "covered", "with a reason", "missing"):
        table.add_column(heading, justify="left" if heading in ("part", "weight") else "right")
    for title, lines in [
        *parts.items(),
        ("all", [each for part in parts.values() for each in part]),
    ]:
        for weight in Weight:
            of_weight = [line for line in lines if line.weight is weight]
            covered = sum(line.number in tests for line in of_weight)
            excused = sum(line.number not in tests and bool(line.reason) for line in of_weight)
            missing = len(of_weight) - covered - excused
            counts = map(str, (len(of_weight), covered, excused, missing))
            table.add_row(title, weight.value, *counts)
    return table


def main(arguments: list[str]) -> None:
    """Parse the command line and print the report; exits with 1 for a complaint."""
    parser = argparse.ArgumentParser(prog="python3 tests conformance", description=__doc__)
    parser.add_argument("--missing", action="store_true", help="only lines without a test")
    chosen = parser.parse_args(arguments)
    tests = names_by_number()
    # A pipe has no width: 80 columns would wrap the names of tests.
    console = Console(width=None if sys.stdout.isatty() else 160)
    for title, lines in PARTS.items():
        shown = [line for line in lines if not (chosen.missing and line.number in tests)]
        if shown:
            console.print(table_of(title, shown, tests))
    console.print(summary(PARTS, tests))
    found = complaints(PARTS, tests)
    for complaint in found:
        console.print(Text(complaint, style="red"))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
