"""The list of `python3 tests conformance`: well-formed, and every number in a test is on it."""

from __future__ import annotations

import re

import pytest

from conformance.__main__ import complaints, main
from conformance.lines import BEYOND, CORE, PARTS, Line
from conformance.numbers import KNOWN, bearers, names_by_number, numbers_of

ABOUT_CHARS_MAX = 80


def test_the_lines_of_a_part_have_one_letter_and_rising_numbers() -> None:
    for lines in PARTS.values():
        [letter] = {line.number[0] for line in lines}
        numbers = [int(line.number[1:]) for line in lines]

        assert re.fullmatch("[A-Z]", letter)
        assert sorted(set(numbers)) == numbers

    assert sum(map(len, PARTS.values())) == len(KNOWN)


def test_a_line_says_in_a_few_words_what_it_is_about() -> None:
    lines = [line for part in PARTS.values() for line in part]

    odd = [line for line in lines if not 0 < len(line.about) <= ABOUT_CHARS_MAX]

    assert [] == odd


def test_a_line_has_a_reason_only_as_long_as_it_has_no_test() -> None:
    tests = names_by_number()

    both = [
        (line.number, tests[line.number])
        for part in PARTS.values()
        for line in part
        if line.reason and line.number in tests
    ]

    assert [] == both


def test_every_number_in_a_test_is_known_and_legible() -> None:
    found = bearers()

    odd = [bearer for bearer in found if not bearer.is_legible or set(bearer.numbers) - KNOWN]

    assert found
    assert [] == odd


@pytest.mark.parametrize(
    ("docstring", "numbers"),
    [
        ("S12.", ["S12"]),
        ("S12: also at night.", ["S12"]),
        ("S12, S14: both.\n\nAnd more, as P1 has it.", ["S12", "S14"]),
        ("X16, KAFKA-724: of the listening socket.", ["X16"]),
        ("KIP-402, P53: at most 20.", ["P53"]),
        ("KAFKA-6893: processors first.", []),
        ("As S12: the same.", []),
        ("", []),
    ],
)
def test_numbers_are_read_from_the_begin_of_a_docstring(docstring: str, numbers: list[str]) -> None:
    assert numbers == numbers_of(docstring)


def test_a_core_line_needs_a_test_or_a_reason() -> None:
    lines = [
        Line("S1", CORE, "has a test"),
        Line("S2", CORE, "has a reason", "there is no such thing here"),
        Line("S3", CORE, "has nothing"),
        Line("S4", BEYOND, "has a test"),
    ]

    [complaint] = complaints({"all": lines}, {"S1": ["a test"], "S4": ["a test"]})

    assert complaint.startswith("S3 is core")


@pytest.mark.parametrize(("covered", "count"), [(95, 0), (94, 1)])
def test_of_the_lines_beyond_nearly_all_need_a_test_whatever_the_reason(
    covered: int, count: int
) -> None:
    lines = [Line(f"S{number}", BEYOND, "any", "a reason") for number in range(100)]
    tests = {line.number: ["a test"] for line in lines[:covered]}

    assert count == len(complaints({"all": lines}, tests))


def test_every_core_line_and_nearly_every_one_beyond_is_shown_by_a_test() -> None:
    """A number that gets lost with its test is missed here."""
    found = complaints(PARTS, names_by_number())

    assert [] == found


def test_the_report_names_every_line_and_its_exit_code_says_what_it_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    report = capsys.readouterr().out
    assert 0 == caught.value.code
    assert [] == [number for number in KNOWN if not re.search(rf"\b{number} ", report)]

    monkeypatch.setitem(PARTS, "More", [Line("Y1", CORE, "has nothing")])
    with pytest.raises(SystemExit) as caught:
        main(["--missing"])
    report = capsys.readouterr().out
    assert 1 == caught.value.code
    assert "Y1 is core, and has neither a test nor a reason" in report
    assert "S1 " not in report
