"""The values of arguments: numbers, times, names and patterns, and changes of settings."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from trionet._util._text import nearest
from trionet._util.patterns._name_pattern import NamePattern
from trionet.errors import ConfigError

from ._parser import Argument, flag, repeatable

if TYPE_CHECKING:
    from trionet.client.admin._configs import Append, Subtract


INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

_NUMBER: Final = re.compile(r"-?[0-9]+")
#: The maximum number of characters that are parsed as a number; no limit needs as many.
_DIGITS_MAX: Final = 40


def bounded_int(least: int, most: int, *, default: int | None = None) -> Callable[[str], int]:
    """Return an argparse ``type`` that accepts an integer within limits.

    Args:
        least: the smallest accepted value.
        most: the largest accepted value.
        default: a value outside the limits that is also accepted and selects the broker's default;
            None if there is none.
    """

    def number(text: str) -> int:
        # Longer texts exceed any limit, and converting them takes quadratic time.
        found = int(text) if _NUMBER.fullmatch(text) and len(text) <= _DIGITS_MAX else None
        if found is not None and (found == default or least <= found <= most):
            return found
        other = "" if default is None else f", or {default} for the broker's default"
        raise ArgumentTypeError(
            f"invalid value {text[:_DIGITS_MAX]!r}: expected {least} to {most}{other}"
        )

    return number


def is_natural(text: str, most: int) -> bool:
    """Return whether the text is an integer from 0 to ``most``."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX and int(text) <= most


TIME_FORMS: Final = (
    "2026-03-01, 2026-03-01T12:30 (UTC unless it has a zone), 90s, 15m, 2h or 7d (ago), now"
)

_AGO: Final = re.compile(r"-?(\d+)(ms|s|m|h|d|w)")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
# Smaller numbers are seconds (until the year 5138), larger ones milliseconds (from 1973 on).
_MILLISECONDS_FROM: Final = 100_000_000_000


def parse_time(text: str, now: datetime) -> int:
    """Parse a time and return it in milliseconds since the epoch.

    Args:
        text: an ISO 8601 date or time; a duration before now (``2h``); ``now``; or seconds or
            milliseconds since the epoch.
        now: the current time, timezone-aware.

    Raises:
        ConfigError: the text is none of these.
    """
    word = text.strip().lower()
    try:
        if word == "now":
            return _since_1970(now)
        if word.isascii() and word.isdecimal():
            number = int(word)
            if number > INT64_MAX:
                raise OverflowError
            return number if number >= _MILLISECONDS_FROM else number * 1000
        if ago := _AGO.fullmatch(word):
            return _since_1970(now - int(ago[1]) * _UNITS[ago[2]])
        time = datetime.fromisoformat(text.strip())
        return _since_1970(time if time.tzinfo else time.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ConfigError(
            f"invalid time {text!r}: expected {TIME_FORMS}, or seconds since the epoch"
        ) from None


def time_text(milliseconds: int) -> str:
    """Format a timestamp as ISO 8601, or as a number if it is outside the years 1 to 9999."""
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:  # before the year 1, or after 9999
        return str(milliseconds)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"


def allow_times(parser: ArgumentParser) -> None:
    """Make the parser accept values such as ``-1h``, which argparse would treat as options."""
    parser._negative_number_matcher = re.compile(r"-\d+(?:ms|[smhdw])?")  # noqa: SLF001


def _since_1970(time: datetime) -> int:
    # Negative timestamps have special meanings to a broker, such as the end of the log.
    return max(0, (time - _EPOCH) // _MILLISECOND)


def regex_argument(what: str) -> Argument:
    """Return ``--regex``, which applies to the names of ``what``."""
    return flag("-r, --regex", f"treat {what} as regular expressions that must match whole names")


def matching(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return the sorted names that fully match at least one of the patterns.

    Raises:
        ConfigError: a pattern is not a valid regular expression.
    """
    compiled = [_compiled(pattern) for pattern in patterns]
    return sorted(name for name in names if any(each.matches(name) for each in compiled))


def _compiled(pattern: str) -> NamePattern:
    try:
        return NamePattern(re.compile(pattern))
    except re.error as error:
        raise ConfigError(f"invalid regular expression {pattern!r}: {error}") from error


def split_names(texts: Iterable[str]) -> list[str]:
    """Return the names in the values of a repeatable option, each possibly comma-separated."""
    return [name for text in texts for each in text.split(",") if (name := each.strip())]


def known_names(what: str, given: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the names in the values of a repeatable option, in Kafka's spelling.

    Args:
        what: what the names are, for the error message.
        given: the values, each possibly comma-separated.
        known: all names, in Kafka's spelling.

    Raises:
        ConfigError: a name is unknown.
    """
    words = {word.lower(): word for word in known}
    names = split_names(given)
    for name in names:
        if name.lower() not in words:
            raise ConfigError(f"unknown {what} {name!r}; allowed: {', '.join(known)}")
    return [words[name.lower()] for name in names]


def api_name(key: int) -> str:
    """Return the name of the supported API with this key."""
    from trionet.protocol.messages.registry import APIS  # slow to import, and rarely needed

    return APIS[key][1]


def api_key(name: str, hint: str) -> int:
    """Resolve an API name or key to the API key.

    Args:
        name: the name of the API, in any case, or its key.
        hint: how the error message ends if no known name is similar.

    Raises:
        ConfigError: the API is unknown.
    """
    from trionet.protocol.messages.registry import APIS

    keys = {row[1].lower(): key for key, row in APIS.items()}
    key = int(name) if name.isdecimal() else keys.get(name.lower(), -1)
    if key in APIS:
        return key
    names = [row[1] for row in APIS.values()]
    raise ConfigError(f"{name}: unknown API{nearest(name, names) or f'; {hint}'}")


Changes: TypeAlias = "dict[str, str | Append | Subtract | None]"


#: The arguments that :func:`changes` reads.
CHANGES: Final = tuple(
    repeatable(usage, f"{what}; may be repeated")
    for usage, what in (
        ("-s, --set KEY=VALUE", "set a setting to a value"),
        ("--delete, --unset KEY", "delete a setting, restoring its default"),
        ("--append KEY=VALUE", "append an item to a list setting"),
        ("--subtract KEY=VALUE", "remove an item from a list setting"),
    )
)
DRY_RUN: Final = flag("-d, --dry-run", "validate the change without applying it")


def changes(arguments: Namespace) -> Changes:
    """Return the requested changes, keyed by setting; None deletes the setting.

    Raises:
        ConfigError: a change does not have the form KEY=VALUE, or a key occurs twice.
    """
    from trionet.client.admin._configs import Append, Subtract

    found: Changes = {}
    pairs: list[tuple[str, str | Append | Subtract | None]] = [
        *_items(arguments.set, "--set"),
        *((key, None) for key in split_names(arguments.delete)),
        *((key, Append(item)) for key, item in _items(arguments.append, "--append")),
        *((key, Subtract(item)) for key, item in _items(arguments.subtract, "--subtract")),
    ]
    for key, change in pairs:
        if key in found:
            raise ConfigError(f"{key} is changed more than once; specify each key only once")
        found[key] = change
    return found


def _items(texts: Iterable[str], option: str) -> list[tuple[str, str]]:
    return [key_value(text, option) for text in texts]


def change_labels(requested: Mapping[str, object]) -> list[str]:
    """Return the changed keys, with a minus sign before deleted keys.

    The labels omit the values because a value may be secret.
    """
    return [f"-{key}" if change is None else key for key, change in requested.items()]


def key_value(text: str, option: str) -> tuple[str, str]:
    """Split ``KEY=VALUE`` into key and value.

    Raises:
        ConfigError: the text does not have this form; the message names the option.
    """
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"{option} {text}: must have the form KEY=VALUE")
    return key.strip(), value.strip()
