"""``trionet broker``: run a broker until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse

from ..clients._connection import DEFAULT_SERVERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Run a Kafka-protocol broker. When it accepts connections it prints one line, "
        "'trionet broker ready: PLAINTEXT://HOST:PORT', on standard output; log lines go to "
        "standard error. SIGTERM or Ctrl-C stops it gracefully; a second one stops it without "
        "waiting for outstanding responses."
    )
    parser.add_argument(
        "--listen",
        metavar="[PROTOCOL://]HOST:PORT",
        help=f"address to listen on; port 0 picks a free one (default: {DEFAULT_SERVERS}, "
        "or the listeners of --config or --set); the protocol defaults to PLAINTEXT",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", metavar="DIR", help="keep topics and records in this folder")
    where.add_argument(
        "--memory",
        action="store_true",
        help="keep everything in memory (the default unless --config or --set sets log.dirs)",
    )
    parser.add_argument(
        "--brokers",
        metavar="N",
        type=int,
        default=1,
        help="number of nodes to run over the same data; each listens on ports one higher than the "
        "previous one (default: 1)",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a Kafka server.properties file, KRaft mode included"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one Kafka setting; may be repeated; overrides --config",
    )
    parser.add_argument(
        "--dashboard",
        action="store_true",
        help="show the dashboard on this terminal instead of log lines; q also stops the broker",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--reset-altered-settings",
        action="store_true",
        help="do not run a broker; instead delete the broker settings that clients have altered in "
        "this data directory, for a broker that cannot start or be reached with them; topic "
        "settings are kept",
    )
    instead.add_argument(
        "--add-scram",
        metavar="NAME",
        help="do not run a broker; instead create SCRAM credentials for a user in this data "
        "folder; the password is the first line of standard input, or of --password-file",
    )
    parser.add_argument(
        "--password-file", metavar="FILE", help="file that --add-scram reads the password from"
    )
    parser.add_argument(
        "--log-level",
        default="info",
        choices=["debug", "info", "warning", "error"],
        help="lowest level that is logged (default: info)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status; see :func:`._run.run_broker`."""
    from ._run import run_broker  # importing the broker is slow, and --help must be fast

    return run_broker(arguments)
