"""The entry point, which parses the command line and runs the chosen command.

:data:`COMMANDS` is the registry of all commands. Data goes to stdout and messages go to stderr. The
exit status is 0 for success, 2 for an invalid command line or setting, 1 for any other error, and
130 after Ctrl-C. A reader of the output that exits early, as ``head`` does, has read what it
wanted: the command ends, which is no error.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple, Protocol, cast

from trionet import __version__, is_compiled
from trionet.errors import ConfigError, TrionetError

from .arguments._parser import Parser
from .terminal._streams import OutputError, discard_output


class Command(NamedTuple):
    """A command of the registry.

    Attributes:
        summary: the help text, here because ``trionet --help`` must not import any command.
        path: what implements the command: a module, or a module and the name of an object in it. It
            has the functions ``add_arguments(parser)`` and ``run(arguments)``; see
            :class:`Implementation`.
    """

    summary: str
    path: str


# argparse, and not click: importing click takes five times as long, each start would pay for that,
# and its completion starts Python at each tab, where our scripts start nothing. Its help and error
# texts would differ from those that users and scripts know. It would save few lines: a command is
# declared in as many with `arguments._parser`.
COMMANDS: Final = {
    "broker": Command("run a broker that speaks Kafka's wire protocol", "._broker"),
    "jafka": Command("run a broker that speaks the protocol of Jafka and Kafka 0.7", "._jafka"),
    "dashboard": Command("watch a broker or a cluster in the terminal", "._dashboard"),
    "topics": Command("list, describe, create, alter, trim and delete topics", "._topics:COMMANDS"),
    "produce": Command("send records from standard input or files to a topic", ".produce"),
    "consume": Command("write the records of topics to standard output", ".consume"),
    "groups": Command("describe, reset and delete groups, show their lag", "._groups:COMMANDS"),
    "configs": Command(
        "show and change settings of topics, brokers and groups, quotas, users and ACLs",
        "._configs:COMMANDS",
    ),
    "config": Command(
        "show and check the settings of clients and brokers on this machine",
        "._local_settings:COMMANDS",
    ),
    "cluster": Command(
        "show brokers, controllers and log directories, elect leaders", "._cluster:COMMANDS"
    ),
    "transactions": Command("list, describe and abort transactions", "._transactions:COMMANDS"),
    "bench": Command("measure the speed of a cluster or of the network layer", ".bench:COMMANDS"),
    "decode": Command("show requests, responses and record batches field by field", ".decode"),
    "pipeline": Command("analyse a request log on Spark", "._pipeline:COMMANDS"),
    "completion": Command("print a completion script for a shell", ".completion"),
}


class Implementation(Protocol):
    """The interface of what implements a command.

    Attributes:
        add_arguments: adds the arguments of the command to a parser.
        run: runs the command and returns the exit status.
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments without the program name; by default the arguments of the process.

    Returns:
        The exit status.

    Raises:
        SystemExit: argparse exits after ``--help`` and ``--version``, and on invalid usage.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    # Options before the command take no values, so the first word is the command.
    chosen = next((word for word in arguments if not word.startswith("-")), "")
    try:
        return _run(chosen, arguments)
    except KeyboardInterrupt:  # also during imports
        return 130


def _run(chosen: str, arguments: Sequence[str]) -> int:
    """Run the command, and turn an error into a message and an exit status."""
    args = Namespace()
    try:
        if chosen == "__complete":  # called by the completion scripts, not by users
            return _print_names(arguments[1:])
        loaded = {chosen: _load(chosen)} if chosen in COMMANDS else {}
        args = _parse(_parser(loaded), arguments)
        assert loaded, "argparse accepts only what COMMANDS lists"
        status = loaded[chosen].run(args)
        sys.stdout.flush()
        return status
    except OutputError as error:
        _print_message(args, chosen, str(error))
        discard_output()
        return 1
    except TrionetError as error:
        # The client may have logged the error that it raises.
        logged = getattr(args, "last_logged", None)
        if not logged or not str(error).endswith(logged):
            for text in _texts_of(error):
                _print_message(args, chosen, text)
        return 2 if isinstance(error, ConfigError) else 1
    except BrokenPipeError:
        discard_output()
        return getattr(args, "status", 0)
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        _print_message(args, chosen, f"{about}{error.strerror or error}")
        return 1


def _print_names(arguments: Sequence[str]) -> int:
    from .completion._names import print_names

    status = print_names(arguments)
    sys.stdout.flush()
    return status


def _parse(parser: ArgumentParser, arguments: Sequence[str]) -> Namespace:
    try:
        return parser.parse_args(arguments)
    except SystemExit:
        sys.stdout.flush()  # argparse ignores that --help cannot be written
        raise


def _texts_of(error: TrionetError) -> Sequence[str]:
    """Return a line for each problem: a file of settings may have several."""
    return error.args if isinstance(error, ConfigError) and error.args else (str(error),)


def _print_message(args: Namespace, chosen: str, text: str) -> None:
    """Print a message, prefixed with the name of the command."""
    from trionet._util._text import single_line

    prog = getattr(args, "prog", f"trionet {chosen}".rstrip())
    print(f"{prog}: {single_line(text)}", file=sys.stderr)


def _load(name: str) -> Implementation:
    module, _, attribute = COMMANDS[name].path.partition(":")
    loaded = import_module(module, __package__)
    return cast(Implementation, getattr(loaded, attribute) if attribute else loaded)


def whole_parser() -> ArgumentParser:
    """Return a parser with the arguments of all commands, for completion."""
    return _parser({name: _load(name) for name in COMMANDS})


def _parser(loaded: Mapping[str, Implementation]) -> ArgumentParser:
    # No abbreviated options: scripts that use one would break when an option is added.
    parser = Parser(
        prog="trionet",
        description="Kafka's network layer on trio: a broker and its tools.",
        allow_abbrev=False,
    )
    build = "compiled" if is_compiled() else "pure Python"
    parser.add_argument("--version", action="version", version=f"trionet {__version__} ({build})")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (summary, _) in COMMANDS.items():
        description = f"{summary[0].upper()}{summary[1:]}."
        subparser = subparsers.add_parser(
            name, help=summary, description=description, allow_abbrev=False
        )
        if name in loaded:
            loaded[name].add_arguments(subparser)
    return parser
