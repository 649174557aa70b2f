"""``trionet config``: show and check client and broker settings without starting anything."""

from __future__ import annotations

import argparse
import re
from typing import Final

from trionet.errors import ConfigError

from ..arguments._parser import Subcommands, Verb, run
from ..terminal._output import Table, add_format_arguments, write
from . import _check, _show
from ._kinds import APPLIED, KINDS, Key, keys_of


def _add_keys_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help=f"one of {', '.join(KINDS)}")
    parser.add_argument(
        "pattern",
        metavar="PATTERN",
        nargs="?",
        help="only keys that contain a match for this regular expression",
    )
    parser.add_argument(
        "-a",
        "--all",
        action="store_true",
        help="include Kafka keys that have no effect here or are rejected",
    )
    add_format_arguments(parser)


def _run_keys(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, or 1 if no key matches."""
    try:
        pattern = re.compile(arguments.pattern or "")
    except re.error as error:
        raise ConfigError(f"invalid regular expression {arguments.pattern!r}: {error}") from error
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


COMMANDS: Final = {
    "show": Verb(
        "show the effective settings and the origin of each", _show.add_arguments, _show.run
    ),
    "keys": Verb("list all keys with their defaults and meanings", _add_keys_arguments, _run_keys),
    "check": Verb("check a file of settings", _check.add_arguments, _check.run),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
