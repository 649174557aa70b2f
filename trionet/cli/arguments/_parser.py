"""The command-line parser, and commands with subcommands."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that accepts options between positional arguments.

    In ``produce TOPIC -H a=b FILE``, argparse would set the optional FILE to its default
    on reaching ``-H`` and then reject the value that follows.
    """

    _is_retrying = False

    def parse_known_args(  # type: ignore[override]  # the overloads add nothing
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse the arguments, and retry with intermixed parsing if arguments are left over."""
        found, rest = super().parse_known_args(args, namespace)
        is_possible = self._subparsers is None and not self._is_retrying
        if not rest or not is_possible or "--" in (args or ()) or _has_options(rest):
            return found, rest
        self._is_retrying = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_retrying = False


def _has_options(words: Sequence[str]) -> bool:
    """Return whether any of the words is an option, which argparse then rejects as unknown."""
    return any(word.startswith("-") and word != "-" for word in words)


class Verb(NamedTuple):
    """A subcommand of a command.

    Attributes:
        summary: the help text in the list of subcommands.
        add_arguments: adds the arguments of the subcommand to a parser.
        run: runs the subcommand and returns the exit status.
    """

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


class Subcommands:
    """The subcommands of a command.

    Args:
        commands: the subcommands, keyed by name.
    """

    def __init__(self, commands: Mapping[str, Verb]) -> None:
        self._commands = commands

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands and their arguments to ``parser``."""
        subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
        for name, verb in self._commands.items():
            subparser = subparsers.add_parser(
                name,
                help=verb.summary,
                description=f"{verb.summary[0].upper()}{verb.summary[1:]}.",
                allow_abbrev=False,
            )
            subparser.set_defaults(run_subcommand=verb.run, prog=subparser.prog)
            verb.add_arguments(subparser)


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen subcommand and return its exit status."""
    status: int = arguments.run_subcommand(arguments)
    return status
