"""The values of arguments: numbers, names and patterns, and changes of settings."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from trionet._util._text import nearest
from trionet._util._times import time_of
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


def parse_time(text: str, now: datetime) -> int:
    """Parse a time as :func:`time_of` does.

    Raises:
        ConfigError: the text is not a time, or ambiguous.
    """
    try:
        return time_of(text, now)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def checked_topic(name: str) -> str:
    """Return the name of a topic if a request can carry it.

    Raises:
        ConfigError: it is empty or too long, or not UTF-8.
    """
    from trionet.client._argument_checks import topic_name

    try:
        return topic_name(name)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def allow_times(parser: ArgumentParser) -> None:
    """Make the parser accept values such as ``-1h``, which argparse would treat as options."""
    parser._negative_number_matcher = re.compile(r"-\d+(?:ms|[smhdw])?")  # noqa: SLF001


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
