"""The options that every benchmark understands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import attrs


@attrs.frozen
class Options:
    """How much to measure.

    Attributes:
        runs: interleaved runs, of which medians are taken.
        seconds: length of one timed measurement.
        sides: only these sides; empty means all.
        cases: only the cases that contain one of these words; empty means all.
    """

    runs: int
    seconds: float
    sides: Sequence[str] = ()
    cases: Sequence[str] = ()

    def wants(self, side: str) -> bool:
        """Whether a side was asked for, by its name or the word it begins with."""
        return not self.sides or any(side.startswith(wanted) for wanted in self.sides)

    def wants_case(self, case: str) -> bool:
        """Whether a case was asked for."""
        return not self.cases or any(wanted in case for wanted in self.cases)


def add_options(parser: argparse.ArgumentParser, runs: int, seconds: float) -> None:
    """Declare the options with a benchmark's defaults."""
    parser.add_argument("--runs", type=int, default=runs, help="medians of (default %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="of one measurement (default %(default)s)"
    )
    parser.add_argument(
        "--sides", type=_words, default=(), help="only these, such as trionet,kafka (default all)"
    )
    parser.add_argument(
        "--cases", type=_words, default=(), help="only cases that contain one of these words"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="every run as JSON, not a table")
    output.add_argument("--markdown", action="store_true", help="the table as a page has it")
    output.add_argument("--page", action="store_true", help="and put it into docs/performance.md")


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))
