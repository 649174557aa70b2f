"""`subscribePattern` in Java's syntax finds the topics that Java finds, or says why it cannot."""

from __future__ import annotations

import re

import pytest

from trionet.errors import ConfigError
from trionet.spark._topic_pattern import translate

NAMES = [
    "orders.eu",
    "orders.us",
    "orders-1",
    "Orders",
    "order_9",
    "ordersXeu",
    "A1",
    "zz",
    "zzz",
    "__all",
]


def found(pattern: str) -> list[str]:
    search = re.compile(translate(pattern)).search
    return [name for name in NAMES if search(name)]


@pytest.mark.parametrize(
    "pattern",
    [
        "orders",
        "[]-a]b",
        r"^orders\.(eu|us)$",
        "[a-z]+_[0-9]",
        r"\w+-\d",
        "(?:a|b)?z{2,3}",
        "a.b|c",
    ],
)
def test_what_both_have_stays_as_it_is(pattern: str) -> None:
    assert pattern == translate(pattern)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"\Qorders.\E", "orders.eu orders.us"),
        (r"^\Qorders.\E(eu|de)\z", "orders.eu"),
        (r"\Qorders.eu", "orders.eu"),
        (r"orders\E-", "orders-1"),
        (r"^\p{Upper}", "Orders A1"),
        (r"^\p{Lu}\p{Digit}$", "A1"),
        (r"^\pL+$", "Orders ordersXeu zz zzz"),
        (r"^\p{IsAlphabetic}+\Z", "Orders ordersXeu zz zzz"),
        (r"\p{Punct}\p{Alnum}$", "orders-1 order_9"),
        (r"^\P{Alpha}", "__all"),
        (r"^[\p{Lower}\p{Punct}]+$", "orders.eu orders.us zz zzz __all"),
        (r"^[^\p{Lower}]", "Orders A1 __all"),
        (r"(?<kind>order)(?=s\.)", "orders.eu orders.us"),
        (r"^(?<c>z)\k<c>$", "zz"),
        ("^z++$", "zz zzz"),
        ("^z*+z", ""),
        ("^(?>z+)z", ""),
        ("(?i)^orders$", "Orders"),
        ("^(?i:a)1", "A1"),
        ("(?d)(?i)a1", "A1"),
        ("(?u)zz", "zz zzz"),
        (r"\x{7a}{3}", "zzz"),
        ("^z{2}{3}$", "zz"),  # Java ignores all counts but the first
        ("^z+{2}{1,}?$", "zz zzz"),
        (r"^[\Qo.\E]r", "orders.eu orders.us orders-1 order_9 ordersXeu"),
        (r"\hA|\Hz\Hz", ""),
        (r"^\V{2}\z|\v", "A1 zz"),
        (r"^[]\p{Upper}][a-z]+s$", "Orders"),
        (r"^[^]\p{Lower}]+$", "A1"),
        (r"^[\Q\E]z]\p{Lower}$", "zz"),
        ("[+--]1", "orders-1"),
    ],
)
def test_javas_syntax_finds_the_same_topics(pattern: str, names: str) -> None:
    assert names.split() == found(pattern)


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("[a-z&&[^b]]", "&& inside"),
        ("[a-c[x-z]]", "[...] inside"),
        (r"\p{InGreek}", r"\p{InGreek}"),
        (r"[\P{Alpha}]", r"\P{Alpha} inside"),
        (r"[\V]", r"\V inside"),
        ("a(?i)b", "(?i)"),
        ("(?-i)b", "(?-i)"),
        ("(?x) a b", "(?x)"),
        (r"\Ga", r"\G"),
        (r"a\X", r"\X"),
        (r"\N{DIGIT ONE}", r"\N"),
        (r"\b{g}", r"\b"),
        (r"\cA", r"\c"),
    ],
)
def test_what_cannot_be_translated_is_named(pattern: str, construct: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translate(pattern)

    assert f": {construct}" in str(caught.value)
    assert "cannot be translated from Java's" in str(caught.value)


@pytest.mark.parametrize("pattern", ["orders[", "(a", "*a", "a{3,1}", r"\y", "a\\", "[]", "z{2}*"])
def test_what_is_no_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(ConfigError, match="is not a regular expression, or has something of"):
        translate(pattern)
