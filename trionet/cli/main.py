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
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

from trionet import __version__, is_compiled
from trionet.errors import ConfigError, TrionetError

from .arguments._parser import Parser

#: Subcommand: what it does. ``trionet --help`` must not need to import any of their modules.
COMMANDS = {
    "broker": "run a broker that speaks Kafka's wire protocol",
    "dashboard": "look at a broker or a cluster in the terminal",
    "topics": "list, describe, make, alter, trim and delete topics",
    "produce": "send records from standard input, or files, to a topic",
    "consume": "write records of topics to standard output",
    "groups": "describe groups and their lag, reset and delete them",
    "configs": "show and change settings of topics, brokers and groups, quotas, users and access",
    "config": "show and check the settings of clients and brokers on this machine",
    "cluster": "show brokers, controllers and folders, have leaders elected",
    "transactions": "show what transactional producers have open, and abort it",
    "bench": "measure how fast a cluster, or the network layer by itself, is",
    "decode": "show requests, responses and record batches field by field",
    "pipeline": "analyse a request log on Spark",
    "completion": "print what a shell needs to complete command lines",
}

#: The modules that are not packages named as their subcommand.
_MODULES = {
    "completion": "_completion",
    "config": "settings._config",
    "configs": "settings._configs",
    "dashboard": "_dashboard",
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
    try:
        loaded = {chosen: _load(chosen)} if chosen in COMMANDS else {}
        args = _parser(loaded).parse_args(arguments)
        assert loaded, "argparse accepts only what COMMANDS lists"
        return _run(loaded[chosen], args, chosen)
    except KeyboardInterrupt:  # also while it still reads the program
        return 130


def _run(subcommand: Subcommand, args: argparse.Namespace, chosen: str) -> int:
    """Run it; errors become a message and an exit status."""
    try:
        status = subcommand.run(args)
        if sys.stdout is not None:  # it may be closed
            sys.stdout.flush()
        return status
    except TrionetError as error:
        # The client logs that a broker refuses us, and raises the same.
        logged = getattr(args, "last_logged", None)
        if not logged or not str(error).endswith(logged):
            _tell(args, chosen, str(error))
        return 2 if isinstance(error, ConfigError) else 1
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does.
        _discard_output()
        return 1
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        _tell(args, chosen, f"{about}{error.strerror or error}")
        _discard_output()
        return 1


def _tell(args: argparse.Namespace, chosen: str, text: str) -> None:
    """A message, under the name of the subcommand's own subcommand if it has one."""
    from .terminal._output import harmless

    print(f"{getattr(args, 'prog', f'trionet {chosen}')}: {harmless(text)}", file=sys.stderr)


def _discard_output() -> None:
    """What is left in the buffer cannot be written, also not by the interpreter's last flush."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _load(name: str) -> Subcommand:
    return cast(Subcommand, import_module(f"trionet.cli.{_MODULES.get(name, name)}"))


def whole_parser() -> argparse.ArgumentParser:
    """The parser of all subcommands with all their arguments."""
    return _parser({name: _load(name) for name in COMMANDS})


def _parser(loaded: Mapping[str, Subcommand]) -> argparse.ArgumentParser:
    # No abbreviated options: a script that uses one would break with the next option we add.
    parser = Parser(
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
        if name in loaded:
            loaded[name].add_arguments(subparser)
    return parser
