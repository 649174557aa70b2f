"""Formats are cut into text and verbs, and what is wrong in them is reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.cli.records._layout import Verb, delimiter, inside, layout
from trionet.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("%s", [Verb("s")]),
        (r"%k\t%s\n", [Verb("k"), b"\t", Verb("s"), b"\n"]),
        (r"a%%b\\c\x41\0\r\%", [b"a%b\\cA\0\r%"]),
        ("%{%}", [b"{}"]),
        ("%v{hex}.", [Verb("v", "hex"), b"."]),
        ("%d{strftime[%F {x}]}", [Verb("d", "strftime[%F {x}]")]),
        (r"%h{%k=%v{hex} \n}%o", [Verb("h", r"%k=%v{hex} \n"), Verb("o")]),
        ("%h{%k%}}", [Verb("h", "%k%}")]),
        ("é\udcff", ["é".encode() + b"\xff"]),
        ("{%s}", [b"{", Verb("s"), b"}"]),
    ],
)
def test_a_format_is_text_and_verbs(text: str, parts: list[bytes | Verb]) -> None:
    assert parts == layout(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (r"\q", r"\n, \r, \t"),
        ("\\", "unknown escape"),
        (r"\x", "unknown escape"),
        ("100%", "write %% for a percent sign"),
        ("%v{hex", "unclosed brace"),
        ("%h{%v{hex}", "unclosed brace"),
    ],
)
def test_what_is_wrong_is_reported(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        layout(text)

    assert told in str(caught.value)


@given(st.text())
def test_any_text_is_a_format_or_an_error(text: str) -> None:
    try:
        layout(text)
    except ConfigError:
        pass


def test_a_delimiter_has_the_same_escapes_and_is_not_empty() -> None:
    assert b"\x1e%\n" == delimiter(r"\x1e%\n")
    with pytest.raises(ConfigError):
        delimiter("")


@pytest.mark.parametrize("text", ["[%F]", "{%F}", "(%F)", "##%F##", "[[%F]]"])
def test_what_is_in_brackets_of_any_kind(text: str) -> None:
    assert "%F" == inside(text, "%d{strftime")


@pytest.mark.parametrize("text", ["", "[%F", "[[%F]", "#"])
def test_brackets_that_are_not_closed_are_reported(text: str) -> None:
    with pytest.raises(ConfigError, match="must be in brackets"):
        inside(text, "%d{strftime")
