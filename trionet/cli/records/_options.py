"""The options common to ``trionet produce`` and ``trionet consume``."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Final

from trionet.errors import ConfigError

from ..clients._first_response import REACH_SECONDS
from ._layout import delimiter

NEWLINE: Final = "\\n"


def add_record_arguments(parser: argparse.ArgumentParser, keep_going: str) -> None:
    """Add the options common to both commands.

    Args:
        parser: the parser of the command.
        keep_going: the help text of ``--keep-going``.
    """
    parser.set_defaults(prog=parser.prog)
    parser.add_argument(
        "-D",
        "--delimiter",
        metavar="TEXT",
        default=NEWLINE,
        help=r"ends each record (default: \n); \n, \r, \t, \0, \\ and \xNN are escapes",
    )
    parser.add_argument(
        "-K",
        "--key-delimiter",
        metavar="TEXT",
        help="records start with a key, and this separates it from the value",
    )
    parser.add_argument(
        "-s",
        "--serdes",
        metavar="[key=|value=]TYPE",
        action="append",
        default=[],
        help="types of keys and values: string, boolean, short, integer, long, float, "
        "double, json, or a pack-string such as '>iq$'",
    )
    parser.add_argument("-E", "--keep-going", action="store_true", help=keep_going)
    parser.add_argument(
        "-m",
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        help="wait this long for a broker's first response (default: "
        f"{REACH_SECONDS:g}, and less if nothing listens there)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="report only errors")
    parser.add_argument(
        "--progress",
        action="store_true",
        help="report progress each second even if standard error is not a terminal",
    )


def optional_delimiter(text: str | None) -> bytes | None:
    """Parse a delimiter, or return None if none is given."""
    return None if text is None else delimiter(text)


def number(text: str) -> int:
    """Parse an integer of at least 0, for argparse."""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(
            f"invalid number {text!r}: expected an integer of at least 0"
        )
    return int(text)


def number_from_1(text: str) -> int:
    """Parse an integer of at least 1, for argparse."""
    found = number(text)
    if not found:
        raise argparse.ArgumentTypeError("must be at least 1")
    return found


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(
            f"invalid time {text!r}: expected a number of seconds above 0"
        )
    return found


def shows_bar(arguments: argparse.Namespace, *, is_typed: bool) -> bool | None:
    """Return whether to show a progress bar (True), progress lines (False), or neither (None).

    Args:
        arguments: the arguments parsed with :func:`add_record_arguments`.
        is_typed: whether records are read from or written to the terminal.
    """
    if arguments.quiet:
        return None
    if sys.stderr.isatty() and not is_typed:
        return True
    return False if arguments.progress else None


def headers(texts: list[str]) -> list[tuple[str, bytes | None]]:
    """Parse headers of the form ``NAME=VALUE``, or ``NAME`` for a null value.

    Raises:
        ConfigError: a name is missing or not valid UTF-8.
    """
    found: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or (not name.isascii() and "\udc80" <= max(name) <= "\udcff"):
            raise ConfigError(f"-H {text!a}: must have the form NAME=VALUE with the name in UTF-8")
        found.append((name, value.encode("utf-8", "surrogateescape") if equals else None))
    return found
