"""``trionet broker``: run a broker until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse

from ..clients._connection import DEFAULT_SERVERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Run a Kafka-protocol broker. When it accepts connections it prints one line, "
        "'trionet broker ready: PLAINTEXT://HOST:PORT', on standard output; log lines go to "
        "standard error. SIGTERM or Ctrl-C stops it gracefully, a second one without waiting for "
        "answers that are owed."
    )
    parser.add_argument(
        "--listen",
        metavar="[PROTOCOL://]HOST:PORT",
        help=f"where to listen; port 0 takes a free one (default: {DEFAULT_SERVERS}, "
        "or the listeners of --config or --set); the protocol is PLAINTEXT unless another is named",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", metavar="DIR", help="keep topics and records in this folder")
    where.add_argument(
        "--memory",
        action="store_true",
        help="keep everything in memory (the default, unless --config or --set name log.dirs)",
    )
    parser.add_argument(
        "--brokers",
        metavar="N",
        type=int,
        default=1,
        help="how many nodes to be, over the same data; each listens on ports one higher than the "
        "one before (default: 1)",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a Kafka server.properties, KRaft ones included"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one Kafka setting; may be given many times, and wins over --config",
    )
    parser.add_argument(
        "--dashboard",
        action="store_true",
        help="show the dashboard on this terminal, in place of log lines; q stops the broker, too",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--reset-altered-settings",
        action="store_true",
        help="run no broker, but forget what clients have altered of the settings of the one of "
        "this folder, for one that does not start with it, or that nobody reaches; the settings of "
        "topics stay",
    )
    instead.add_argument(
        "--add-scram",
        metavar="NAME",
        help="run no broker, but let a user into the one of this folder by SCRAM; the password is "
        "the first line of standard input, or of --password-file",
    )
    parser.add_argument("--password-file", metavar="FILE", help="where --add-scram reads it")
    parser.add_argument(
        "--log-level",
        default="info",
        choices=["debug", "info", "warning", "error"],
        help="what to log (default: info)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code, see :func:`._run.run_broker`."""
    from ._run import run_broker  # a broker takes long to import, and --help shall not

    return run_broker(arguments)
