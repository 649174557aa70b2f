"""The list of what the connector's suites assert: well-formed, and each line shown or explained."""

from __future__ import annotations

import re

import pytest

from spark.agreement import OPEN, SUITES, names_by_number, numbers_of, report

LINES = [line for lines in SUITES.values() for line in lines]
ABOUT_CHARS_MAX = 80


def test_the_lines_of_a_suite_are_numbered_on() -> None:
    for lines in SUITES.values():
        for letters in {line.number[:2] for line in lines}:
            numbers = [int(line.number[2:]) for line in lines if line.number.startswith(letters)]

            assert re.fullmatch("[A-Z]{2}", letters)
            assert list(range(1, len(numbers) + 1)) == numbers

    assert len(LINES) == len({line.number for line in LINES})


def test_a_line_says_in_a_few_words_what_is_asserted() -> None:
    odd = [line for line in LINES if not 0 < len(line.about) <= ABOUT_CHARS_MAX]

    assert [] == odd


def test_a_test_names_lines_that_there_are() -> None:
    assert set() == names_by_number().keys() - {line.number for line in LINES}


def test_a_line_has_a_reason_only_as_long_as_it_has_no_test() -> None:
    tests = names_by_number()

    assert [] == [line.number for line in LINES if line.reason and line.number in tests]


def test_every_line_is_shown_or_explained_or_known_to_be_open() -> None:
    """A number that gets lost with its test is missed here, and one that got a test leaves OPEN."""
    tests = names_by_number()
    missing = {line.number for line in LINES if not line.reason and line.number not in tests}

    assert [] == sorted(missing - OPEN)
    assert [] == sorted(OPEN - missing)


@pytest.mark.parametrize(
    ("docstring", "numbers"),
    [
        ("RC1: so.", ["RC1"]),
        ("RC1, OP12: so, as RC3.", ["RC1", "OP12"]),
        ("As RC1: so.", []),
        ("S12: of another list.", []),
        ("RC1 and more.", []),
        ("", []),
    ],
)
def test_numbers_are_read_from_the_begin_of_a_docstring(docstring: str, numbers: list[str]) -> None:
    assert numbers == numbers_of(docstring)


def test_the_report_has_every_line() -> None:
    text = report()

    assert [] == [line.number for line in LINES if f"  {line.number:<5} " not in text]
