"""The nine types of Kafka's configuration values, with parsing and validation.

The type numbers are those of DescribeConfigs (Kafka: ConfigDef.Type, ConfigEntry.ConfigType). A
rule corresponds to a validator in Kafka. It is a ``range`` of numbers, a tuple of allowed strings,
list items or integers, or ``None`` for any value of the type.

Numbers are spelled as for Java's ``parseInt`` and ``parseDouble``, except that NaN and hexadecimal
fractions are rejected: every comparison with NaN is false, so no rule could exclude it.
"""

from __future__ import annotations

import math
import os
import re
from typing import Final, TypeAlias

from ..errors import ConfigError

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(1, 10)

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308

# Shown in place of a password, as in Kafka.
HIDDEN = "[hidden]"

_INTEGER_BITS = {SHORT: 16, INT: 32, LONG: 64}
_NUMBERS = {SHORT: "SHORT", INT: "INT", LONG: "LONG", DOUBLE: "DOUBLE"}
_DIGITS_MAX = 30

# What Java's String.trim() removes. Python's strip() also removes spaces outside of ASCII, and
# keeps most control characters.
_TRIMMED: Final = "".join(map(chr, range(0x21)))

# float() also accepts "1_0", "nan" and digits outside of ASCII, but no "1f" and "1d".
_DOUBLE: Final = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?|([+-]?Infinity)"
)
# Digits of other scripts that are one UTF-16 unit, as in Java.
_DIGIT_MAX: Final = "\uffff"


class Password:
    """A secret that cannot leak accidentally into logs, reprs or responses.

    Args:
        text: the secret; only the attribute ``text`` reveals it.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text: str = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Password({HIDDEN})"


Value: TypeAlias = bool | int | float | str | tuple[str, ...] | Password | None
Rule: TypeAlias = range | tuple[str, ...] | tuple[int, ...] | None

#: A row in a table of configuration keys: name, type, default and rule.
Row: TypeAlias = tuple[str, int, Value, Rule]


def at_least(lowest: int) -> range:
    """Return the rule for values of at least ``lowest``, limited by the type."""
    return range(lowest, LONG_MAX + 1)


def between(lowest: int, highest: int) -> range:
    """Return the rule for values from ``lowest`` to ``highest``, both inclusive."""
    return range(lowest, highest + 1)


FROM_0 = at_least(0)
FROM_1 = at_least(1)
FROM_MINUS_1 = at_least(-1)


def parse_value(key: str, kind: int, rule: Rule, raw: object) -> Value:
    """Parse and check the value of a setting.

    Args:
        key: the key, for the error message.
        kind: one of the nine types.
        rule: which values of the type are allowed.
        raw: a string as in ``server.properties``, or a Python value; ``None`` is returned as is.

    Raises:
        ConfigError: the value has the wrong type or is not allowed. The message lists the allowed
            values, and never contains a password.
    """
    if raw is None:
        return None
    value = _PARSERS[kind](raw)
    if value is None or not _is_allowed(value, kind, rule):
        shown = HIDDEN if kind == PASSWORD else repr(raw)
        raise ConfigError(f"{key} = {shown} is not allowed; allowed: {allowed(kind, rule)}")
    return value


def parse_request_value(key: str, kind: int, rule: Rule, text: str) -> Value:
    """Parse and check the value of a setting in a request.

    Raises:
        ConfigError: the value is not allowed. The message is Kafka's, which people's programs and
            tests compare; :func:`parse_value` has a better one for people.
    """
    try:
        return parse_value(key, kind, rule, text)
    except ConfigError:
        value = _PARSERS[kind](text)
        if isinstance(value, tuple) and isinstance(rule, tuple):
            value = next((item for item in value if item not in rule), value)
        shown = text if value is None else value_text(value)
        raise ConfigError(
            f"Invalid value {shown} for configuration {key}: {_reason(value, kind, rule)}"
        ) from None


def _reason(value: Value, kind: int, rule: Rule) -> str:
    """Return Kafka's reason why a value is not allowed; None is one that cannot be parsed."""
    if kind == BOOLEAN:
        return "Expected value to be either true or false"
    is_too_large = isinstance(value, int) and value not in _integers(kind, None)
    if value is None or is_too_large:
        return f"Not a number of type {_NUMBERS[kind]}"
    if isinstance(rule, range) and isinstance(value, (int, float)):
        if value < rule.start:
            return f"Value must be at least {rule.start}"
        return f"Value must be no more than {rule.stop - 1}"
    choices = [str(each) for each in rule or ()]
    if kind in _NUMBERS:  # gzip's levels
        return f"Value must be between {choices[1]} and {choices[-1]} or equal to {choices[0]}"
    return f"String must be one of: {', '.join(choices)}"


def value_text(value: Value) -> str | None:
    """Format a value as Kafka does. ``None`` is returned unchanged, and passwords are hidden."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _double_text(value)
        case Password():
            return HIDDEN
    return ",".join(value)


def allowed(kind: int, rule: Rule) -> str:
    """Return a description of the values that a type and a rule allow."""
    if isinstance(rule, tuple):
        choices = ", ".join(map(str, rule))
        return f"any of {choices}, separated by commas" if kind == LIST else f"one of {choices}"
    if kind in _INTEGER_BITS:
        numbers = _integers(kind, rule)
        return f"an integer from {numbers.start} to {numbers.stop - 1}"
    if kind == DOUBLE:
        return "a number" if rule is None else f"a number from {rule.start} to {rule.stop - 1}"
    return {BOOLEAN: "true or false", LIST: "strings, separated by commas"}.get(kind, "a string")


def _is_allowed(value: Value, kind: int, rule: Rule) -> bool:
    match value:
        case float() if isinstance(rule, range):
            return rule.start <= value <= rule.stop - 1
        case tuple() if isinstance(rule, tuple):
            return all(item in rule for item in value)
        case int() if kind in _INTEGER_BITS and not isinstance(rule, tuple):
            return value in _integers(kind, rule)
    return rule is None or value in rule


def _integers(kind: int, rule: range | None) -> range:
    half = 1 << (_INTEGER_BITS[kind] - 1)
    lowest, stop = (-half, half) if rule is None else (rule.start, min(rule.stop, half))
    return range(lowest, stop)


def _boolean(raw: object) -> Value:
    if isinstance(raw, bool):
        return raw
    text = raw.strip(_TRIMMED).lower() if isinstance(raw, str) else ""
    return {"true": True, "false": False}.get(text)


def _text(raw: object) -> str | None:
    if isinstance(raw, os.PathLike):
        raw = os.fspath(raw)
    return raw.strip(_TRIMMED) if isinstance(raw, str) else None


def _integer(raw: object) -> Value:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return int(raw)  # a range is walked through for an instance of a subclass
    # int() also accepts "1_000", Kafka does not.
    text = raw.strip(_TRIMMED) if isinstance(raw, str) else ""
    digits = text[1:] if text[:1] in ("+", "-") else text
    is_integer = digits.isdecimal() and max(digits) <= _DIGIT_MAX and len(digits) <= _DIGITS_MAX
    return int(text) if is_integer else None


def _double(raw: object) -> Value:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    if isinstance(raw, str):
        found = _DOUBLE.fullmatch(raw.strip(_TRIMMED))
        return float(found[1] or found[2]) if found else None
    try:
        number = float(raw)
    except OverflowError:
        return None
    return None if math.isnan(number) else number


def _list(raw: object) -> Value:
    if isinstance(raw, str):
        trimmed = raw.strip(_TRIMMED)
        return tuple(item.strip(_TRIMMED) for item in trimmed.split(",")) if trimmed else ()
    items = raw if isinstance(raw, list | tuple) else [raw]
    texts = tuple(text for item in items if (text := _text(item)) is not None)
    return texts if len(texts) == len(items) else None


def _password(raw: object) -> Value:
    if isinstance(raw, Password):
        return raw
    return Password(raw) if isinstance(raw, str) else None


def _double_text(value: float) -> str:
    """Format a number as Java's Double.toString does, with an exponent below 1e-3 and from 1e7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # The fewest digits that parse to the same number; 17 always do.
    texts = (f"{value:.{precision}e}" for precision in range(1, 17))
    digits, _, exponent = next(text for text in texts if float(text) == value).partition("e")
    return f"{digits}E{int(exponent)}"


_PARSERS = {
    BOOLEAN: _boolean,
    STRING: _text,
    CLASS: _text,
    SHORT: _integer,
    INT: _integer,
    LONG: _integer,
    DOUBLE: _double,
    LIST: _list,
    PASSWORD: _password,
}
