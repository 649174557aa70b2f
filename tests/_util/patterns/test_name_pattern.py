"""A program's patterns, matched against names that strangers choose, in a bounded time."""

from __future__ import annotations

import logging
import re
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trionet._util.patterns import _name_pattern
from trionet._util.patterns._name_pattern import NamePattern

_parts = st.sampled_from(
    [
        *("a", "-", ".", r"\.", r"\w", r"\W", r"\d", r"\s", "[a-c]", "[^a]", "[]a]", "[a-]"),
        *("(a|a-)", "(?:b|)", "(?i:A)", "(?=a)", "(?!-)", "(?<=a)", r"\b", "^", "$", "[.]", "A"),
        *(r"\x61", "(?>a|a-)", r"\Z", "{", "(?P<n>a)", "(?#b)", "[[a]", "[a&&b]"),
    ]
)
_repetitions = st.sampled_from(["", "", "*", "+", "?", "*?", "{2}", "{1,}", "{,2}", "*+"])
_patterns = st.lists(st.tuples(_parts, _repetitions).map("".join), min_size=1, max_size=6).map(
    "".join
)


def compiled(text: str, flags: int) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of what will be sets one day
            return re.compile(text, flags)
    except (re.error, OverflowError):
        return re.compile("valid")


@given(
    pattern=st.builds(
        compiled,
        _patterns,
        st.sampled_from([re.NOFLAG, re.ASCII, re.IGNORECASE, re.DOTALL | re.MULTILINE]),
    ),
    name=st.text("abA-._ 1b&[", max_size=12),
)
@example(pattern=compiled("[a&&b]*", re.NOFLAG), name="a&b")
@example(pattern=compiled("[a[b]]*", re.NOFLAG), name="a]]")
@example(pattern=compiled("[+-[a]*]", re.NOFLAG), name="[a]")
@example(pattern=compiled(r"[\][a]]*", re.NOFLAG), name="aa")
@example(pattern=compiled("[]a[b]]*", re.NOFLAG), name="ab")
@example(pattern=compiled(r"[^[\w]-]*", re.NOFLAG), name="&-]")
@example(pattern=compiled(r"\0101*", re.NOFLAG), name="A")
@example(pattern=compiled(r"\u017f*", re.IGNORECASE), name="s")
@example(pattern=compiled(r"\N{KELVIN SIGN}*", re.IGNORECASE), name="k")
def test_every_name_gets_the_verdict_of_re(pattern: re.Pattern[str], name: str) -> None:
    names = NamePattern(pattern)
    names._is_nested = True  # no name is quick

    assert (pattern.fullmatch(name) is not None) == names.matches(name)


@pytest.mark.parametrize(
    "pattern",
    [
        ".*-.*-.*-.*-.*x",
        "([a-z]+-?)+x",
        r"(\w|-)*(\w|-)*(\w|-)*x",
        r"(?:[a-z]+|-+|\\)*x",
        "(?:a|-|a-)*x",
        "(?i)[a-z-]+[A-Z-]+[a-z-]+[a-z-]+[a-z-]+x",
        "(?!__)(?:[^-]*-?)*-x",
    ],
)
@pytest.mark.parametrize("name", ["-" * 249, "a" * 249, "a-" * 124, "a" * 124 + "-" * 125])
def test_no_name_takes_a_pattern_many_steps(pattern: str, name: str) -> None:
    """With re, each of these names takes at least one of the patterns longer than a test may."""
    assert not NamePattern(re.compile(pattern)).matches(name)


def test_a_name_that_takes_too_many_steps_is_not_matched_with_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_name_pattern, "STEPS_MAX", 100)
    names = NamePattern(re.compile("(a+)+"))

    with caplog.at_level(logging.WARNING):
        verdicts = [names.matches("a" * 50) for _ in range(3)]

    assert [False] * 3 == verdicts
    assert 1 == caplog.text.count("takes more than 100 steps")


def test_an_ordinary_pattern_needs_no_other_matcher_for_any_name_of_a_topic() -> None:
    for pattern in ("orders-.*", r"(eu|us)-[a-z]+-\w*", r".*\.events\..*"):
        names = NamePattern(re.compile(pattern))
        assert names._is_quick(249), pattern
