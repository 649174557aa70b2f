"""Kafka's nine configuration types."""

from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import ConfigError
from trionet.protocol._config_types import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    DOUBLE_MAX,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    PASSWORD,
    SHORT,
    STRING,
    Password,
    Rule,
    Value,
    at_least,
    between,
    parse_request_value,
    parse_value,
    value_text,
)


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        (BOOLEAN, "true", True),
        (BOOLEAN, " FALSE ", False),
        (BOOLEAN, True, True),
        (STRING, " a b ", "a b"),
        (STRING, Path("/data"), "/data"),
        (CLASS, "org.example.Name", "org.example.Name"),
        (INT, " 77 ", 77),
        (INT, "-1", -1),
        (INT, "+5", 5),
        (INT, 2**31 - 1, 2**31 - 1),
        (INT, signal.SIGTERM, 15),
        (SHORT, "-32768", -32768),
        (LONG, "9223372036854775807", LONG_MAX),
        (DOUBLE, "0.5", 0.5),
        (DOUBLE, 1, 1.0),
        (DOUBLE, "1.7976931348623157E308", DOUBLE_MAX),
        (DOUBLE, "1e400", math.inf),
        (DOUBLE, "-Infinity", -math.inf),
        (DOUBLE, math.inf, math.inf),
        (DOUBLE, "5f", 5.0),
        (DOUBLE, "+.5e1D", 5.0),
        (DOUBLE, "1.", 1.0),
        (DOUBLE, "\x001\x1f", 1.0),
        (INT, "\x001\x1f", 1),
        (INT, "\u0661\uff12", 12),
        (LIST, "a, b ,c", ("a", "b", "c")),
        (LIST, "", ()),
        (LIST, ["a ", "b"], ("a", "b")),
        (LIST, Path("/data"), ("/data",)),
        (PASSWORD, " secret ", Password(" secret ")),
        (INT, None, None),
    ],
)
def test_texts_and_python_values_become_values(kind: int, raw: object, expected: Value) -> None:
    value = parse_value("some.key", kind, None, raw)

    assert expected == value
    assert type(expected) is type(value)


@pytest.mark.parametrize(
    ("kind", "raw", "allowed"),
    [
        (BOOLEAN, "yes", "true or false"),
        (BOOLEAN, 1, "true or false"),
        (STRING, 5, "a string"),
        (INT, "1_000", "an integer from -2147483648 to 2147483647"),
        (INT, "1.0", "an integer from -2147483648 to 2147483647"),
        (INT, 1.0, "an integer from -2147483648 to 2147483647"),
        (INT, True, "an integer from -2147483648 to 2147483647"),
        (INT, "", "an integer from -2147483648 to 2147483647"),
        (INT, "-", "an integer from -2147483648 to 2147483647"),
        (INT, "1e3", "an integer from -2147483648 to 2147483647"),
        (INT, "0x10", "an integer from -2147483648 to 2147483647"),
        (INT, "\xa01", "an integer from -2147483648 to 2147483647"),
        (INT, "\U0001d7d9", "an integer from -2147483648 to 2147483647"),
        (DOUBLE, "0_1", "a number"),
        (DOUBLE, "1_0.0", "a number"),
        (DOUBLE, "\u0661", "a number"),
        (DOUBLE, "1\u2003", "a number"),
        (DOUBLE, "inf", "a number"),
        (DOUBLE, "infinity", "a number"),
        (DOUBLE, "NaN", "a number"),
        (DOUBLE, math.nan, "a number"),
        (BOOLEAN, "\xa0true", "true or false"),
        (INT, "9" * 5000, "an integer from -2147483648 to 2147483647"),
        (INT, 2**31, "an integer from -2147483648 to 2147483647"),
        (SHORT, 2**15, "an integer from -32768 to 32767"),
        (LONG, str(2**63), "an integer from -9223372036854775808 to 9223372036854775807"),
        (DOUBLE, "nan", "a number"),
        (DOUBLE, "much", "a number"),
        (DOUBLE, False, "a number"),
        (LIST, [1, 2], "strings, separated by commas"),
        (CLASS, object, "a string"),
    ],
)
def test_what_is_not_of_the_type_is_refused(kind: int, raw: object, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("some.key", kind, None, raw)

    assert f"some.key = {raw!r} is not allowed; allowed: {allowed}" == str(caught.value)


@pytest.mark.parametrize(
    ("kind", "rule", "good", "bad", "allowed"),
    [
        (INT, at_least(1), 1, 0, "an integer from 1 to 2147483647"),
        (LONG, at_least(-2), -2, -3, "an integer from -2 to 9223372036854775807"),
        (INT, between(1, 17), 17, 18, "an integer from 1 to 17"),
        (INT, (-1, 1, 2), -1, 0, "one of -1, 1, 2"),
        (DOUBLE, between(0, 1), 1.0, 1.01, "a number from 0 to 1"),
        (STRING, ("a", "b"), "b", "c", "one of a, b"),
        (LIST, ("a", "b"), "b,a", "a,c", "any of a, b, separated by commas"),
    ],
)
def test_rules_narrow_the_type(
    kind: int, rule: Rule, good: object, bad: object, allowed: str
) -> None:
    assert parse_value("some.key", kind, rule, good) is not None
    with pytest.raises(ConfigError) as caught:
        parse_value("some.key", kind, rule, bad)

    assert str(caught.value).endswith(f"; allowed: {allowed}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (-5, "-5"),
        ("text", "text"),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (100.0, "100.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.0005, "5.0E-4"),
        (DOUBLE_MAX, "1.7976931348623157E308"),
        (Password("secret"), "[hidden]"),
    ],
)
def test_values_print_as_java_prints_them(value: Value, text: str | None) -> None:
    assert text == value_text(value)


def test_a_password_is_in_no_repr_and_in_no_error() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("some.key", PASSWORD, None, ["secret"])

    assert "secret" not in repr(Password("secret"))
    assert "secret" not in str(caught.value)
    assert Password("secret").text == "secret"


@pytest.mark.parametrize(
    ("kind", "rule", "text", "reason"),
    [
        (BOOLEAN, None, "0", "0 for configuration k: Expected value to be either true or false"),
        (INT, None, "x", "x for configuration k: Not a number of type INT"),
        (
            INT,
            at_least(0),
            "2147483648",
            "2147483648 for configuration k: Not a number of type INT",
        ),
        (SHORT, None, "", " for configuration k: Not a number of type SHORT"),
        (LONG, at_least(-1), " -2 ", "-2 for configuration k: Value must be at least -1"),
        (INT, between(1, 17), "18", "18 for configuration k: Value must be no more than 17"),
        (INT, (-1, *range(1, 10)), "0", "0 for configuration k: Value must be between 1 and 9 or"),
        (DOUBLE, between(0, 1), "-1", "-1.0 for configuration k: Value must be at least 0"),
        (DOUBLE, None, "0_1", "0_1 for configuration k: Not a number of type DOUBLE"),
        (STRING, ("a", "b"), "c", "c for configuration k: String must be one of: a, b"),
        (LIST, ("a", "b"), "b,c", "c for configuration k: String must be one of: a, b"),
    ],
)
def test_requests_are_refused_in_kafkas_words(
    kind: int, rule: Rule, text: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_request_value("k", kind, rule, text)

    assert str(caught.value).startswith(f"Invalid value {reason}")


def test_passwords_are_equal_by_their_text() -> None:
    passwords = {Password("a"), Password("a"), Password("b")}

    assert len(passwords) == 2
    assert Password("a") != "a"


@given(st.floats(allow_nan=False))
def test_doubles_read_back_as_they_print(value: float) -> None:
    assert value == parse_value("some.key", DOUBLE, None, value_text(value))


@given(
    st.integers(min_value=1, max_value=9),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
)
def test_anything_is_a_value_or_exactly_one_error(kind: int, raw: object) -> None:
    try:
        value = parse_value("some.key", kind, None, raw)
    except ConfigError:
        return
    assert (raw is None) == (value is None)
