"""Confirms destructive commands, by asking on the terminal or by ``--yes``."""

from __future__ import annotations

import argparse
import sys

from trionet._util._text import single_line
from trionet.errors import ConfigError


def add_confirmation_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--yes``."""
    parser.add_argument(
        "-y",
        "--yes",
        "--no-confirm",
        dest="yes",
        action="store_true",
        help="do not ask for confirmation; required without a terminal",
    )


def confirmed(arguments: argparse.Namespace, question: str) -> bool:
    """Return whether the user confirms an operation, by ``--yes`` or on the terminal.

    Args:
        arguments: the arguments, including ``yes``.
        question: the operation to confirm, without a question mark.

    Raises:
        ConfigError: there is neither ``--yes`` nor a terminal.
    """
    if arguments.yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(
            "cannot ask for confirmation, since stdin is not a terminal; pass --yes to "
            f"{single_line(question)}"
        )
    print(f"{arguments.prog}: {single_line(question)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    print(f"{arguments.prog}: nothing was changed", file=sys.stderr)
    return False
