"""Patterns of transactional ids: as RE2 understands them, in time that a client cannot stretch."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.transactions._id_pattern import CHARACTERS_MAX, STATES_MAX, IdPattern

_atoms = st.sampled_from(
    ["a", "b", "ä", ".", r"\d", r"\W", r"\.", "[ab]", "[^a-c]", r"[\d-]", "[]a]", "[[&]", "^", "$"]
)
_repetitions = st.sampled_from(
    ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,3}"]
)


def _repeated(part: tuple[str, str]) -> str:
    text, repetition = part
    return text + ("" if text in "^$" else repetition)


def _sequence(parts: list[str]) -> str:
    return "".join(parts)


_groups = st.sampled_from(["(", "(?:", "(?P<n>"])
_patterns = st.recursive(
    st.tuples(_atoms, _repetitions).map(_repeated),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(_sequence),
        st.lists(inner, min_size=1, max_size=3).map("|".join).map(lambda text: f"({text})"),
        st.tuples(inner, _repetitions).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


@given(pattern=_patterns, ignores_case=st.booleans(), id=st.text("abcäA.[&-1_\n", max_size=8))
def test_matches_what_re_matches(pattern: str, ignores_case: bool, id: str) -> None:
    flags = re.ASCII | (re.IGNORECASE if ignores_case else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # re's, of what this takes literally
        # RE2 has "$" only at the very end.
        expected = re.compile(pattern.replace("$", r"\Z"), flags).fullmatch(id) is not None

    assert expected == IdPattern("(?i)" * ignores_case + pattern).matches(id)


@pytest.mark.parametrize(
    ("pattern", "id"),
    [
        ("tx-.*", "tx-1"),
        ("orders|payments", "payments"),
        (r"a\.b", "a.b"),
        ("(?P<name>ab)+", "abab"),
        ("(?<name>ab)", "ab"),
        ("a{", "a{"),
        ("(?i)Tx", "tX"),
        ("T(?i)x", "TX"),
        ("((?i)t)x", "Tx"),
        ("()", ""),
        ("^a$", "a"),
        ("[a&&b|~[]", "~"),
        ("[[:alpha:]_-]+", "tx_-"),
    ],
)
def test_what_is_used_in_practice_is_supported(pattern: str, id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert IdPattern(pattern).matches(id)


def test_a_pattern_must_match_the_whole_id() -> None:
    pattern = IdPattern("b+")

    assert [True, False, False, False] == [pattern.matches(id) for id in ("bb", "ab", "ba", "")]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*a", "nothing to repeat"),
        ("{2}", "nothing to repeat"),
        ("a|+", "nothing to repeat"),
        ("a**", "a repetition is repeated"),
        ("a{2}{3}", "a repetition is repeated"),
        ("(a", "not closed by '\\)'"),
        ("a)", "unexpected '\\)' at position 1"),
        ("[a", "not closed by ']'"),
        ("a\\", "ends with a backslash"),
        ("a{3,2}", "cannot repeat from 3 to 2 times"),
        (r"\bx", r"the escape \\b is not supported"),
        (r"\pL", r"the escape \\p is not supported"),
        (r"(a)\1", r"the escape \\1 is not supported"),
        ("(?=a)", r"the group \(\?= is not supported"),
        ("(?i:b)", r"the group \(\?i is not supported"),
        ("[[:foo:]]", "not supported"),
        ("[a--b]", "not supported"),
        ("[b-a]", "bad character range"),
    ],
)
def test_what_is_invalid_or_not_supported_is_said_to_be_so(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IdPattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "a{301}",
        "(a{20}){20}",
        "(((){300}){300}){300}",
        "((((|){300}){300}){300}){300}",
        "|" * CHARACTERS_MAX,
        "(" * 51 + ")" * 51,
        "(" * (CHARACTERS_MAX // 2) + ")" * (CHARACTERS_MAX // 2),
        "".join(map(chr, range(256, 256 + CHARACTERS_MAX))),
        "a" * 30_000,
        "a{" + "9" * 2000 + "}",
    ],
    ids=lambda text: text[:12],
)
def test_a_pattern_that_would_take_long_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"may|cannot repeat"):
        IdPattern(pattern)


@pytest.mark.parametrize("text", ["(a*)*b", "(a|a)*b", "(.*)(.*)(.*)(.*)x", "((a?){100})*b"])
def test_the_steps_for_an_id_are_as_many_as_its_characters(text: str) -> None:
    """Where backtracking would take exponential time."""
    pattern = IdPattern(text)
    assert pattern.size <= STATES_MAX

    for length in (10, 1000):
        assert length == sum(1 for _ in pattern.steps("a" * length))
