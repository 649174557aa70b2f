"""``trionet pipeline``: analyse a broker's request log on Spark.

Its subcommands are modules that are quick to import; PySpark, NumPy and Arrow are imported when
they run.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

#: Subcommand: its module and summary.
COMMANDS = {
    "run": ("trionet.cli.pipeline._run", "run the job that analyses a request log"),
    "report": ("trionet.cli.pipeline._report", "report the job's results as tables or as a page"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Turn the request log of a broker (request.log.topic) into rates, percentiles, top "
        "talkers, errors and anomalies, on Spark."
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, dest="subcommand")
    for name, (_, summary) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, allow_abbrev=False)
        _module(name).add_arguments(subparser)


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen subcommand; returns its exit status."""
    status: int = _module(arguments.subcommand).run(arguments)
    return status


def _module(name: str) -> Any:
    return import_module(COMMANDS[name][0])
