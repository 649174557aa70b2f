"""``trionet config keys``."""

from __future__ import annotations

import argparse
import re

from trionet.errors import ConfigError

from ..terminal._output import Table, add_format_arguments, write
from ._kinds import APPLIED, KINDS, Key, keys_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help=f"one of {', '.join(KINDS)}")
    parser.add_argument(
        "pattern", metavar="PATTERN", nargs="?", help="only keys with this regular expression in it"
    )
    parser.add_argument(
        "-a",
        "--all",
        action="store_true",
        help="also keys of Kafka's that change nothing here, or that are refused",
    )
    add_format_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 listed, 1 there is no such key."""
    try:
        pattern = re.compile(arguments.pattern or "")
    except re.error as error:
        raise ConfigError(f"{arguments.pattern!r} is no regular expression: {error}") from error
    keys = [
        key
        for key in keys_of(arguments.kind).values()
        if (arguments.all or key.use == APPLIED) and pattern.search(key.name)
    ]
    fields = Key._fields if arguments.all else ("name", "default", "type", "meaning")
    write(
        arguments.format,
        Table(fields, [[getattr(key, field) for field in fields] for key in keys]),
    )
    return 0 if keys else 1
