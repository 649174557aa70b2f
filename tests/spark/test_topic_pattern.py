"""`subscribePattern` in Java's syntax finds the topics that Java finds, or says why it cannot."""

from __future__ import annotations

import pytest

from trionet.errors import ConfigError
from trionet.spark._topic_pattern import check, is_found

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
    checked = check(pattern)
    return [name for name in NAMES if is_found(checked, name)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"^orders\.(eu|us)$", "orders.eu orders.us"),
        (r"\w+-\d", "orders-1"),
        ("(?:a|b)?z{2,3}", "zz zzz"),
        ("[a-z&&[^o]][a-z]*X", "ordersXeu"),
        ("^[A-C[x-z]].?$", "A1 zz"),
        (r"^[\P{Alpha}]", "__all"),
        ("o(?i)RD", "orders.eu orders.us orders-1 order_9 ordersXeu"),
        ("(?i)O(?-i)r", "orders.eu orders.us orders-1 Orders order_9 ordersXeu"),
        (r"\cA|zzz", "zzz"),
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
        ("(?x) ^ z {2, 3} # two or three", "zz zzz"),
        (r"^\p{javaUpperCase}\p{IsLatin}+$", "Orders"),
        (r"^\p{InBasicLatin}\N{DIGIT ONE}", "A1"),
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


@pytest.mark.parametrize("pattern", ["orders[", "(a", "*a", "a{3,1}", r"\y", "a\\", "[]", "z{2}*"])
def test_what_is_no_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(ConfigError, match="is not a regular expression, or has something of"):
        check(pattern)


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        (r"\p{InGreek}", r"property \p{InGreek}"),
        (r"\Ga", r"escape \G"),
        (r"a\X", r"escape \X"),
        (r"a\b{g}", r"escape \b{g}"),
    ],
)
def test_what_is_not_supported_is_named(pattern: str, construct: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(pattern)

    assert f"the {construct} is not supported" in str(caught.value)


def test_the_longest_name_cannot_stretch_the_time_of_a_match() -> None:
    """A backtracking matcher would take hours for it."""
    pattern = check(r"^(.*)\.(.*)\.(.*)\.(.*)\.(.*)\.(.*)-v[0-9]+$")

    assert not is_found(pattern, 249 * ".")


def test_an_alternative_for_each_of_hundreds_of_topics_is_possible() -> None:
    pattern = check("|".join(f"company.team-{number}.orders" for number in range(500)))

    assert is_found(pattern, "company.team-499.orders")
    assert not is_found(pattern, "company.team-500.order")


def test_no_name_that_strangers_choose_makes_lookahead_an_error() -> None:
    pattern = check("(?=.*-prod)(?=.*-eu)(?=.*-v1)(?=.*-x).*events")

    assert not is_found(pattern, ("-prod-eu-v1-x" * 20)[:249])


def test_what_takes_too_many_steps_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"needs more than 5000000 steps for the topic"):
        is_found(check(r"^(a|a)+\1b$"), 249 * "a")
