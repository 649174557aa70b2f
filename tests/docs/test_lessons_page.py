"""docs/lessons.md has every ticket of the list once, and its tests and reasons are there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "lessons.md").read_text("utf-8")

# Kafka's tickets about its network layer, by their numbers.
TICKETS = {
    "Processors, acceptors, quotas, start and stop": (
        *(724, 1512, 1577, 2096, 2351, 2353, 2614, 2813, 3341, 3489, 3703, 4129, 5587, 5595, 5607),
        *(5790, 6529, 6893, 6950, 7354, 7459, 7719, 9190, 9652, 9796, 10673, 13457, 13735, 13736),
        *(14658, 14774, 14908, 15804, 16703, 17268),
    ),
    "Selector and channels": (
        *(1282, 1928, 2266, 2298, 2517, 3378, 5417, 6185, 6260, 7453, 7639, 7712, 8066, 9056),
        *(10014, 10029, 12427, 13559),
    ),
    "TLS and SASL": (
        *(2534, 2779, 2801, 5920, 6258, 7012, 7168, 7454, 7505, 9110, 9577, 9711, 9854, 13418),
        *(13539, 16305, 16393, 16471),
    ),
    "NetworkClient and its connections": (
        *(1642, 2459, 2519, 2756, 3014, 3495, 3916, 4098, 4841, 5014, 5042, 5263, 6101, 6289, 6345),
        *(7231, 7576, 7779, 7890, 7974, 8275, 8376, 8933, 10243, 12193, 12762, 12948, 13388, 13879),
        *(13950, 15817, 16083, 17455),
    ),
    "Producer": (
        *(1445, 1673, 2138, 3122, 3197, 3388, 3648, 3651, 3655, 3720, 3747, 4235, 4557, 4741, 4840),
        *(5239, 5429, 5957, 7311, 7501, 7709, 8134, 8635, 9449, 10888, 12736, 13630, 13834, 14020),
        *(14156, 15415, 16226, 17862, 19012),
    ),
}
NAMED_TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>test_\w+)`")
WITHOUT_TICKET = "no ticket"
REASON_CHARS_MIN = 20


class Lesson(NamedTuple):
    """One line of a table.

    Attributes:
        tickets: what it is about; a few lessons have no ticket.
        tests: the file and the name of each test that holds it.
        reason: why it cannot be broken, or what there is to be said beside the tests.
    """

    tickets: str
    wrong: str
    rule: str
    tests: tuple[tuple[str, str], ...]
    reason: str


def lessons(text: str) -> list[Lesson]:
    """The lines of all tables in a text; a line that is none of a lesson is an error."""
    found = []
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith(("| Ticket |", "|---")):
            tickets, wrong, rule, held = (cell.strip() for cell in line.strip("|").split(" | "))
            tests = tuple((match["path"], match["name"]) for match in NAMED_TEST.finditer(held))
            reason = NAMED_TEST.sub("", held).replace("<br>", "").strip()
            found.append(Lesson(tickets, wrong, rule, tests, reason))
    return found


def section(title: str) -> str:
    """What stands below a heading."""
    _, heading, rest = PAGE.partition(f"\n## {title}\n")
    assert heading, f"there is no section {title}"
    return rest.partition("\n## ")[0]


@cache
def functions_in(path: str) -> frozenset[str]:
    """The functions of a file, read without running it; none if there is no such file."""
    file = ROOT / path
    tree = ast.parse(file.read_text("utf-8") if file.exists() else "")
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_the_sections_are_those_of_the_list() -> None:
    assert list(TICKETS) == re.findall(r"^## (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("title", TICKETS)
def test_every_ticket_of_the_list_is_in_its_section_once(title: str) -> None:
    expected = Counter(f"KAFKA-{number}" for number in TICKETS[title])

    named = Counter(
        ticket
        for lesson in lessons(section(title))
        if lesson.tickets != WITHOUT_TICKET
        for ticket in lesson.tickets.split(", ")
    )

    assert expected == named


def test_no_ticket_is_named_anywhere_else_on_the_page() -> None:
    named = re.findall(r"KAFKA-\d+", PAGE)

    assert sum(map(len, TICKETS.values())) == len(named) == len(set(named))


@pytest.mark.parametrize("lesson", lessons(PAGE), ids=lambda lesson: lesson.tickets)
def test_a_lesson_is_described_and_held_by_tests_that_exist_or_a_reason(lesson: Lesson) -> None:
    assert lesson.wrong.endswith(".")
    assert lesson.rule.endswith(".")
    assert lesson.tests or len(lesson.reason) >= REASON_CHARS_MIN
    assert not lesson.reason or re.fullmatch(r"[A-Z][^`]*\.", lesson.reason)
    assert [] == [test for test in lesson.tests if test[1] not in functions_in(test[0])]


def test_a_line_is_read_with_its_tests_and_what_is_said_beside_them() -> None:
    text = """
| Ticket | What went wrong | The rule | Where it is held |
|---|---|---|---|
| KAFKA-1, KAFKA-2 | This. | That. | `tests/a.py::test_b`<br>`tests/c/d.py::test_e`<br>And so. |
| no ticket | This. | That. | `tests/a.py::helper` |
"""

    first, second = lessons(text)

    tests = (("tests/a.py", "test_b"), ("tests/c/d.py", "test_e"))
    assert Lesson("KAFKA-1, KAFKA-2", "This.", "That.", tests, "And so.") == first
    assert ((), "`tests/a.py::helper`") == (second.tests, second.reason)
