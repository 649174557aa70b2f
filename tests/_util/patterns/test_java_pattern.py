"""Java's regular expressions: its groups, in steps that a text cannot stretch."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet._util.patterns._java_pattern import JavaPattern
from trionet._util.patterns._program import Slots, Steps, TooManyStepsError

ENOUGH = 10**7

_parts = st.sampled_from(
    ["a", "b", ".", r"\w", "[ab]", "[^a]", "(a|ab)", "(b|)", "(?:ab|b)", "(.)", "^", "$", r"\b"]
)
_repetitions = st.sampled_from(["", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}?"])
_repeated = st.tuples(_parts, _repetitions).map(
    # Of repeated groups that may be empty, Java and Python report different ones.
    lambda pair: pair[0] + (pair[1] if pair[0] not in ("^", "$", r"\b", "(b|)") else "")
)
_patterns = st.lists(_repeated, min_size=1, max_size=5).map("".join)


def groups(slots: Slots) -> list[tuple[int | None, int | None]]:
    return list(zip(slots[::2], slots[1::2], strict=True))


def found(pattern: str, text: str) -> list[str]:
    """The texts of all matches."""
    return [text[slots[0] : slots[1]] for slots in JavaPattern(pattern).find_all(text, Steps(9**9))]


@given(pattern=_patterns, text=st.text("ab,", max_size=10))
def test_finds_the_groups_that_backtracking_finds(pattern: str, text: str) -> None:
    ours = next(JavaPattern(pattern).find_all(text, Steps(ENOUGH)), None)
    theirs = re.compile(pattern, re.ASCII).search(text)

    if theirs is None:
        assert ours is None
    else:
        assert ours is not None
        none = (-1, -1)
        spans = [theirs.span(number) for number in range(theirs.re.groups + 1)]
        assert groups(ours) == [(None, None) if span == none else span for span in spans]


@given(pattern=_patterns, text=st.text("ab,", max_size=10))
def test_the_same_is_found_with_backtracking(pattern: str, text: str) -> None:
    """A lookahead that is always true makes the expression one for the other matcher."""
    linear, other = JavaPattern(pattern), JavaPattern(f"{pattern}(?=)")

    assert linear.is_linear
    assert not other.is_linear
    assert linear.matches(text, Steps(ENOUGH)) == other.matches(text, Steps(ENOUGH))
    expected = list(other.find_all(text, Steps(ENOUGH)))
    assert expected == list(linear.find_all(text, Steps(ENOUGH)))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("[a-c&&[^b]]+", "abca", ["a", "ca"]),
        ("[]a]+", "a]", ["a]"]),
        ("[a[xy]-]+", "x-a", ["x-a"]),
        (r"[\w&&\D]", "1a", ["a"]),
        (r"\p{Upper}\p{javaX}"[:9], "aB", ["B"]),
        (r"\P{L}\pL", "1ä", ["1ä"]),
        (r"\Qa.b\E+", "a.bbaxb", ["a.bb"]),
        (r"\x41\u0042\x{43}\0104\t", "ABCD\t", ["ABCD\t"]),
        ("(?i)Ä|k(?-i)L", "ä KL kl", ["KL"]),
        ("(?i:a)B", "AB ab", ["AB"]),
        ("(?s)a.b|(?-s:c.d)", "a\nb c\nd", ["a\nb"]),
        ("a.", "a\x85a\u2028a\ra\x0b", ["a\x0b"]),
        ("(?m)^.$", "a\r\nb\n", ["a", "b"]),
        ("a$", "a\n", ["a"]),
        (r"a\z|a\Z", "a\r\n", ["a"]),
        (r"\Aa|\bb\B", "aa bb b", ["a", "b"]),
        (r"\R", "\r\n\n", ["\r\n", "\n"]),
        (r"(?<x>a+)-\k<x>", "aa-a a-a", ["a-a", "a-a"]),
        (r"(?i)(a)\1", "aA", ["aA"]),
        ("a(?=b)|(?<=a)b(?!b)|(?<!b)c", "abb c ab", ["a", "c", "a", "b"]),
        ("(?>a|ab)c|x++x|y?+y", "abc xx yy", ["yy"]),
        ("a{2}{3}", "aaaa", ["aa", "aa"]),
        ("(?x) a b # both\n | c{1, 2} ", "ab a b cc", ["ab", "cc"]),
        (r"(?x)[b d]\ | (?-x:a c) + ?", "b a ca c", ["b ", "a c", "a c"]),
        (r"(?x: a b )c\Q #\E(?x)\Q #\E", "abc # #", ["abc # #"]),
        (r"\N{DIGIT ONE}[\N{latin small letter a}]", "1a", ["1a"]),
        (r"\p{javaLowerCase}\p{javaUpperCase}\P{javaLetterOrDigit}", "aB-äÖ.", ["aB-", "äÖ."]),
        (r"\p{javaJavaIdentifierStart}\p{javaJavaIdentifierPart}+", "1a2$ -_", ["a2$"]),
        (r"\p{javaWhitespace}|\p{javaSpaceChar}\p{javaMirrored}", "a\t\xa0(", ["\t", "\xa0("]),
        (r"\p{gc=Lu}\p{general_category=Nd}\p{IsAlnum}\p{LC}\p{all}", "A1aB-", ["A1aB-"]),
        (r"\p{IsWORD}\p{IsHexDigit}\p{Iswhite_space}\p{IsLC}", "_f\x85a", ["_f\x85a"]),
        ("", "ab", ["", "", ""]),
    ],
)
def test_constructs_of_java(pattern: str, text: str, expected: list[str]) -> None:
    assert expected == found(pattern, text)


def test_the_last_iteration_of_a_repeated_group_counts_also_if_it_is_empty() -> None:
    (slots,) = JavaPattern("^(a*)*$").find_all("aa", Steps(ENOUGH))

    assert [(0, 2), (2, 2)] == groups(slots)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "not closed by '\\)'"),
        ("a)", "unexpected '\\)' at position 1"),
        ("[a", "not closed by ']'"),
        ("a**", "nothing to repeat"),
        ("a{", "illegal repetition"),
        ("a{3,2}", "cannot repeat from 3 to 2 times"),
        ("a\\", "ends with a backslash"),
        ("[b-a]", "illegal character range"),
        (r"[a-\d]", "illegal character range"),
        (r"\1", "there is no group 1"),
        (r"\k<a>", "name of a group"),
        ("(?<a>x)(?<a>y)", "defined twice"),
        (r"\y", r"the escape \\y is not supported"),
        (r"\G", r"the escape \\G is not supported"),
        (r"\p{Greek}", "the property .* is not supported"),
        (r"\p{IsLatin}", "the property .* is not supported"),
        (r"\p{InBasicLatin}", "the property .* is not supported"),
        (r"\p{gc=Upper}\p{x=L}", "the property .*x=L.* is not supported"),
        (r"\N{NO SUCH}", "no character has the name"),
        (r"\N{KEYCAP DIGIT ONE}", "no character has the name"),
        (r"\N1", r"\\N is not followed by the name"),
        ("(?x)a # (b\n(c", "not closed"),
        ("(?y)a", "the flag y is not supported"),
        ("a{,3}", "illegal repetition"),
        ("(?#a)", "the group .* is not supported"),
        ("(?P<a>b)", "the group .* is not supported"),
        (r"\x{110000}", "there is no character"),
        ("(a{50}){100}", "too large"),
        ("(" * 60 + ")" * 60, "nested"),
        ("[" * 60 + "a" + "]" * 60, "nested"),
        ("a" * 40_000, "may have"),
    ],
)
def test_what_is_invalid_or_not_supported_is_said_to_be_so(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JavaPattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\p{IsLatin}+|\p{InBasicLatin}", ["orders", ".", "eu"]),
        (r"\p{script=LATIN}+(?=\p{sc=zyyy})|\p{block=Basic Latin}$", ["orders", "u"]),
        (r"\p{IsLatn}+\p{IsCommon}\p{blk=BASIC_LATIN}*", ["orders.eu"]),
    ],
)
def test_in_texts_of_ascii_there_are_the_scripts_and_blocks_of_its_characters(
    pattern: str, expected: list[str]
) -> None:
    text = "orders.eu"
    compiled = JavaPattern(pattern, is_ascii=True)

    assert expected == [text[each[0] : each[1]] for each in compiled.find_all(text, Steps(ENOUGH))]


@pytest.mark.parametrize("name", ["IsGreek", "InGreek", "IsLatins", "Latin", "isLatin", "sc=Han"])
def test_other_scripts_and_blocks_are_not_supported(name: str) -> None:
    with pytest.raises(ValueError, match=r"the property .* is not supported"):
        JavaPattern(rf"\p{{{name}}}", is_ascii=True)


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(.*?)(.*?)(.*?)(.*)x", "((a?){50})*b"])
def test_the_steps_grow_with_the_text_and_no_faster(pattern: str) -> None:
    compiled = JavaPattern(pattern)
    compiled.matches(1000 * "a", Steps(ENOUGH))  # after which all transitions are known

    for length in (1000, 10_000):
        assert not compiled.matches(length * "a", Steps(2 * length))


@pytest.mark.parametrize("pattern", [r"(a|a)*\1b", "(?=(a*)*b)", "(?>a*?)*+b", "a*z|a"])
def test_no_match_takes_more_than_its_steps(pattern: str) -> None:
    compiled = JavaPattern(pattern)

    with pytest.raises(TooManyStepsError):
        list(compiled.find_all(10_000 * "a", Steps(20_000)))


def test_what_is_remembered_of_texts_is_bounded() -> None:
    """A text may have as many different characters as it likes."""
    compiled = JavaPattern("(?s)(?:[a-z]|.)*")

    for start in range(0x100, 0xD000, 0x1000):
        text = "".join(map(chr, range(start, start + 0x1000)))
        assert compiled.matches(text, Steps(ENOUGH))
        assert compiled.remembered <= 50_000
