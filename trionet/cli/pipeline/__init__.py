"""``trionet pipeline``: a broker's request log, analysed on Spark. Its own subcommands are modules.

Each is a module like those of :mod:`trionet.cli.main`, and as quick to import: what needs PySpark,
NumPy or Arrow is imported when it runs.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

#: Subcommand: its module in this package, and what it does.
COMMANDS = {
    "run": ("pipeline._run", "start the job that turns a request log into results"),
    "report": ("pipeline._report", "tell what the job has found out, as tables or as a page"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Turn what a broker with request.log.topic has logged into rates, percentiles, talkers, "
        "errors and anomalies, on Spark."
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, dest="subcommand")
    for name, (_, summary) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, allow_abbrev=False)
        _module(name).add_arguments(subparser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    status: int = _module(arguments.subcommand).run(arguments)
    return status


def _module(name: str) -> Any:
    return import_module(f"trionet.cli.{COMMANDS[name][0]}")
