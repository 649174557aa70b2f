"""Counts, misspelt names, and untrusted text on a terminal: nothing that it might obey or hide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet._util._text import counted, nearest, printable, quoted, single_line


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1234, "1,234 records")],
)
def test_one_is_not_many(number: int, text: str) -> None:
    assert text == counted(number, "record")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("stabel", "; the closest match is Stable"),
        ("confluent_kafka", "; the closest match is confluent-kafka"),
        ("CONFLUENT", "; the closest match is confluent-kafka"),
        ("zebra", ""),
    ],
)
def test_the_closest_name_is_found_whatever_its_case_and_separators(name: str, hint: str) -> None:
    assert hint == nearest(name, ["Stable", "Dead", "confluent-kafka"])


@given(st.text())
def test_no_text_reaches_a_terminal_as_it_is(text: str) -> None:
    shown = quoted(text)

    assert shown.isprintable()
    assert shown.isascii() or any(each in text for each in shown if not each.isascii())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('say "hi"', '"say \\"hi\\""'),
        ("\x1b[31m", '"\\u001b[31m"'),
        ("a\u202eb", '"a\\u202eb"'),
        ("\U000e0001", '"\\U000e0001"'),
        ("line\r\n", '"line\\r\\n"'),
        ("naïve 日本 🙂", '"naïve 日本 🙂"'),
    ],
)
def test_what_a_terminal_might_obey_or_hide_is_escaped(text: str, shown: str) -> None:
    assert shown == quoted(text)


def test_without_quotes_around_it_quotes_stay_as_they_are() -> None:
    assert 'say "hi"\\n' == printable('say "hi"\n')


def test_a_message_is_one_line_and_keeps_what_is_harmless() -> None:
    assert "it's \\ 注: a\\x1b[2J\\n" == single_line("it's \\ 注: a\x1b[2J\n")
