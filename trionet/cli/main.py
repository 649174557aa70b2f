"""The entry point, which parses the command line and runs the chosen subcommand.

A subcommand is a module with two functions::

    def add_arguments(parser: argparse.ArgumentParser) -> None
    def run(args: argparse.Namespace) -> int                     # the exit status

Data goes to stdout and messages go to stderr. The exit status is 0 for success, 2 for an invalid
command line or setting, 1 for any other error, and 130 after Ctrl-C.
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

#: The summaries of subcommands, here because ``trionet --help`` must not import any subcommand.
COMMANDS = {
    "broker": "run a broker that speaks Kafka's wire protocol",
    "dashboard": "watch a broker or a cluster in the terminal",
    "topics": "list, describe, create, alter, trim and delete topics",
    "produce": "send records from standard input or files to a topic",
    "consume": "write the records of topics to standard output",
    "groups": "describe, reset and delete groups, show their lag",
    "configs": "show and change settings of topics, brokers and groups, quotas, users and ACLs",
    "config": "show and check the settings of clients and brokers on this machine",
    "cluster": "show brokers, controllers and log directories, elect leaders",
    "transactions": "list, describe and abort transactions",
    "bench": "measure the speed of a cluster or of the network layer",
    "decode": "show requests, responses and record batches field by field",
    "pipeline": "analyse a request log on Spark",
    "completion": "print a completion script for a shell",
}

_MODULES = {
    "broker": "trionet.cli.broker",
    "dashboard": "trionet.cli._dashboard",
    "topics": "trionet.cli.topics",
    "produce": "trionet.cli.produce",
    "consume": "trionet.cli.consume",
    "groups": "trionet.cli.groups",
    "configs": "trionet.cli.settings._cluster_settings",
    "config": "trionet.cli.settings._local_settings",
    "cluster": "trionet.cli._cluster",
    "transactions": "trionet.cli._transactions",
    "bench": "trionet.cli.bench",
    "decode": "trionet.cli.decode",
    "pipeline": "trionet.cli.pipeline",
    "completion": "trionet.cli._completion",
}


class Subcommand(Protocol):
    """The interface of a subcommand's module."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: the arguments without the program name; by default the arguments of the process.

    Returns:
        The exit status.

    Raises:
        SystemExit: argparse exits after ``--help`` and ``--version``, and on invalid usage.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    # Options before the subcommand take no values, so the first word is the subcommand.
    chosen = next((word for word in arguments if not word.startswith("-")), "")
    try:
        loaded = {chosen: _load(chosen)} if chosen in COMMANDS else {}
        args = _parser(loaded).parse_args(arguments)
        assert loaded, "argparse accepts only what COMMANDS lists"
        return _run(loaded[chosen], args, chosen)
    except KeyboardInterrupt:  # also during imports
        return 130


def _run(subcommand: Subcommand, args: argparse.Namespace, chosen: str) -> int:
    """Run the subcommand, and turn an error into a message and an exit status."""
    try:
        status = subcommand.run(args)
        if sys.stdout is not None:  # None if it is closed
            sys.stdout.flush()
        return status
    except TrionetError as error:
        # The client may have logged the error that it raises.
        logged = getattr(args, "last_logged", None)
        if not logged or not str(error).endswith(logged):
            _print_message(args, chosen, str(error))
        return 2 if isinstance(error, ConfigError) else 1
    except BrokenPipeError:
        # The reader of the output has exited, as `head` does.
        _discard_output()
        return 1
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        _print_message(args, chosen, f"{about}{error.strerror or error}")
        _discard_output()
        return 1


def _print_message(args: argparse.Namespace, chosen: str, text: str) -> None:
    """Print a message, prefixed with the names of the command and the subcommand."""
    from trionet._util._text import single_line

    print(f"{getattr(args, 'prog', f'trionet {chosen}')}: {single_line(text)}", file=sys.stderr)


def _discard_output() -> None:
    """Discard buffered output that cannot be written, so that the flush at exit does not fail."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _load(name: str) -> Subcommand:
    return cast(Subcommand, import_module(_MODULES[name]))


def whole_parser() -> argparse.ArgumentParser:
    """Return a parser with the arguments of all subcommands, for completion."""
    return _parser({name: _load(name) for name in COMMANDS})


def _parser(loaded: Mapping[str, Subcommand]) -> argparse.ArgumentParser:
    # No abbreviated options: scripts that use one would break when an option is added.
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
