"""Which of what a cluster has is meant: by names, or by regular expressions."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence

from trionet.errors import ConfigError


def add_regex_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """Describe ``--regex``, for the names of ``what``."""
    parser.add_argument(
        "-r",
        "--regex",
        action="store_true",
        help=f"the names of {what} are regular expressions, each for whole names",
    )


def matching(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """The names that one of the patterns fits as a whole, in order.

    Raises:
        ConfigError: a pattern is no regular expression.
    """
    compiled = [_compiled(pattern) for pattern in patterns]
    return sorted(name for name in names if any(each.fullmatch(name) for each in compiled))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{pattern!r} is no regular expression: {error}") from error
