"""What ``trionet produce`` and ``trionet consume`` have in common on the command line."""

from __future__ import annotations

import argparse
import re
import sys
from typing import IO, Final

from trionet.errors import ConfigError

from ._layout import delimiter

#: How long a first answer of a broker may take: somebody waits who may have mistyped its address.
KNOWN_SECONDS: Final = 10.0
NEWLINE: Final = "\\n"


def add_record_arguments(parser: argparse.ArgumentParser, keep_going: str) -> None:
    """Describe the options of both.

    Args:
        parser: of the command.
        keep_going: what ``--keep-going`` does there.
    """
    parser.set_defaults(prog=parser.prog)
    parser.add_argument(
        "-D",
        "--delimiter",
        metavar="TEXT",
        default=NEWLINE,
        help=r"behind each record (default: \n); \n, \r, \t, \0, \\ and \xNN are escapes",
    )
    parser.add_argument(
        "-K",
        "--key-delimiter",
        metavar="TEXT",
        help="records have a key in front, and this between key and value",
    )
    parser.add_argument(
        "-s",
        "--serdes",
        metavar="[key=|value=]TYPE",
        action="append",
        default=[],
        help="what keys and values are made of: string, boolean, short, integer, long, float, "
        "double, json, or a pack-string such as '>iq$'",
    )
    parser.add_argument("-E", "--keep-going", action="store_true", help=keep_going)
    parser.add_argument(
        "-m",
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=KNOWN_SECONDS,
        help="how long a first answer of a broker may take (default: %(default)g)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="tell errors only")
    parser.add_argument(
        "--progress",
        action="store_true",
        help="tell each second how far it is, where standard error is no terminal, too",
    )


def optional_delimiter(text: str | None) -> bytes | None:
    """A delimiter that may not be there."""
    return None if text is None else delimiter(text)


def number(text: str) -> int:
    """A number from 0 on, for argparse."""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


def number_from_1(text: str) -> int:
    """A number from 1 on, for argparse."""
    found = number(text)
    if not found:
        raise argparse.ArgumentTypeError("it is at least 1")
    return found


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return found


def check_open(file: IO[str] | None, name: str) -> None:
    """Whether a standard stream is there: else its number is soon that of a connection.

    Raises:
        ConfigError: whoever started us has closed it.
    """
    if file is None:
        raise ConfigError(f"standard {name} is closed")


def shows_bar(arguments: argparse.Namespace, *, is_typed: bool) -> bool | None:
    """Whether a bar is shown, or lines (False), or neither (None).

    Args:
        arguments: with those of :func:`add_record_arguments`.
        is_typed: whether somebody reads or writes records on the terminal.
    """
    if arguments.quiet:
        return None
    if sys.stderr.isatty() and not is_typed:
        return True
    return False if arguments.progress else None


def headers(texts: list[str]) -> list[tuple[str, bytes | None]]:
    """The headers of ``NAME=VALUE``; a name alone has null.

    Raises:
        ConfigError: there is no name, or it is not UTF-8.
    """
    found: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or (not name.isascii() and "\udc80" <= max(name) <= "\udcff"):
            raise ConfigError(f"-H {text!a}: must have the form NAME=VALUE, the name in UTF-8")
        found.append((name, value.encode("utf-8", "surrogateescape") if equals else None))
    return found
