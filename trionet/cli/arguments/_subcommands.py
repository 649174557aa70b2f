"""A command whose own subcommands are modules, each like those of :mod:`trionet.cli.main`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Any


class Subcommands:
    """The subcommands of one command.

    Args:
        commands: for each subcommand, its module below ``trionet.cli``, and what it does.
    """

    def __init__(self, commands: Mapping[str, tuple[str, str]]) -> None:
        self._commands = commands

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Describe them, and their arguments, to ``parser``."""
        subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
        for name, (module, summary) in self._commands.items():
            subparser = subparsers.add_parser(
                name,
                help=summary,
                description=f"{summary[0].upper()}{summary[1:]}.",
                allow_abbrev=False,
            )
            command: Any = import_module(f"trionet.cli.{module}")
            subparser.set_defaults(run_subcommand=command.run, prog=subparser.prog)
            command.add_arguments(subparser)


def run(arguments: argparse.Namespace) -> int:
    """Run the one that was chosen; returns its exit status."""
    status: int = arguments.run_subcommand(arguments)
    return status
