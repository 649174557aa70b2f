"""Parses names on the command line: lists, topic and group patterns, and API names."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from trionet.errors import ConfigError


def add_regex_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--regex``, which applies to the names of ``what``."""
    parser.add_argument(
        "-r",
        "--regex",
        action="store_true",
        help=f"treat {what} as regular expressions that must match whole names",
    )


def matching(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return the sorted names that fully match at least one of the patterns.

    Raises:
        ConfigError: a pattern is not a valid regular expression.
    """
    compiled = [_compiled(pattern) for pattern in patterns]
    return sorted(name for name in names if any(each.fullmatch(name) for each in compiled))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"invalid regular expression {pattern!r}: {error}") from error


def split_names(texts: Iterable[str]) -> list[str]:
    """Return the names in the values of a repeatable option, each possibly comma-separated."""
    return [name for text in texts for each in text.split(",") if (name := each.strip())]


# The minimum similarity of a suggested name, from 0 to 1.
_SIMILARITY_MIN: Final = 0.6


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
    near = difflib.get_close_matches(name.lower(), keys, 1, _SIMILARITY_MIN)
    suggestion = f"did you mean {api_name(keys[near[0]])}?" if near else hint
    raise ConfigError(f"{name}: unknown API; {suggestion}")
