"""Choose the subcommand and run it; only the chosen one is imported.

A subcommand is a module of this package with two functions::

    def add_arguments(parser: argparse.ArgumentParser) -> None
    def run(args: argparse.Namespace) -> int                     # the exit status

Data goes to stdout, messages to stderr. Exit status 0 is success, 2 a command line or a setting
that is wrong, 1 everything else that went wrong and has a message, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol, cast

from trionet import __version__, is_compiled
from trionet.errors import ConfigError, TrionetError

#: Subcommand (and module) name: what it does. ``trionet --help`` must not need to import any.
COMMANDS = {
    "broker": "run a broker that speaks Kafka's wire protocol",
    "decode": "show requests, responses and record batches field by field",
    "pipeline": "analyse a request log on Spark",
}


class Subcommand(Protocol):
    """What a module of this package offers to :func:`main`."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: the arguments without the program's name; by default those of the process.

    Returns:
        The exit status.

    Raises:
        SystemExit: from argparse, for ``--help``, ``--version`` and wrong usage.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    # The options in front of a subcommand take no values, so the first word is the subcommand.
    chosen = next((word for word in arguments if not word.startswith("-")), "")
    subcommand = _load(chosen) if chosen in COMMANDS else None
    args = _parser(chosen, subcommand).parse_args(arguments)
    assert subcommand is not None, "argparse accepts only what COMMANDS lists"
    try:
        return subcommand.run(args)
    except TrionetError as error:
        print(f"trionet {chosen}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; nothing more can be written, also not
        # by the interpreter's last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _load(name: str) -> Subcommand:
    return cast(Subcommand, import_module(f"trionet.cli.{name}"))


def _parser(chosen: str, subcommand: Subcommand | None) -> argparse.ArgumentParser:
    # No abbreviated options: a script that uses one would break with the next option we add.
    parser = argparse.ArgumentParser(
        prog="trionet",
        description="Kafka's network layer on trio: a broker and its tools.",
        allow_abbrev=False,
    )
    build = "compiled" if is_compiled() else "pure Python"
    parser.add_argument("--version", action="version", version=f"trionet {__version__} ({build})")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        description = f"{summary[0].upper()}{summary[1:]}."
        subparser = subparsers.add_parser(
            name, help=summary, description=description, allow_abbrev=False
        )
        if name == chosen and subcommand is not None:
            subcommand.add_arguments(subparser)
    return parser
