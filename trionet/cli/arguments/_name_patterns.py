"""Select topics or groups by name or by regular expression."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence

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
    """Return the names that one of the patterns matches as a whole, sorted.

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
