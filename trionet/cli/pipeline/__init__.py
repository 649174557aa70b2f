"""``trionet pipeline``: analyse a broker's request log on Spark.

The modules of the subcommands are quick to import: PySpark, NumPy and Arrow are imported only when
a subcommand runs.
"""

from __future__ import annotations

import argparse

from ..arguments._parser import Verb
from . import _report, _run

COMMANDS = {
    "run": Verb("run the job that analyses a request log", _run.add_arguments, _run.run),
    "report": Verb(
        "report the job's results as tables or as a page", _report.add_arguments, _report.run
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Turn the request log of a broker (request.log.topic) into rates, percentiles, top "
        "talkers, errors and anomalies, on Spark."
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, dest="subcommand")
    for name, verb in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=verb.summary, allow_abbrev=False)
        verb.add_arguments(subparser)


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen subcommand and return its exit status."""
    return COMMANDS[arguments.subcommand].run(arguments)
