"""Nothing is destroyed by accident: somebody says yes first, or ``--yes`` does."""

from __future__ import annotations

import argparse
import sys

from trionet.errors import ConfigError

from ._output import harmless


def add_confirming_argument(parser: argparse.ArgumentParser) -> None:
    """Describe ``--yes``."""
    parser.add_argument(
        "-y",
        "--yes",
        "--no-confirm",
        dest="yes",
        action="store_true",
        help="do not ask; needed where there is no terminal to ask on",
    )


def confirmed(arguments: argparse.Namespace, question: str) -> bool:
    """Ask on the terminal, unless ``--yes`` was given.

    Args:
        arguments: with ``yes``.
        question: what is about to be done, without a question mark.

    Raises:
        ConfigError: there is no terminal.
    """
    if arguments.yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(f"to {harmless(question)} needs --yes where there is no terminal")
    print(f"{arguments.prog}: {harmless(question)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    print(f"{arguments.prog}: nothing was changed", file=sys.stderr)
    return False
