"""``trionet broker``: run a broker until SIGTERM or Ctrl-C, or edit the data of a stopped one.

:mod:`._broker_run` does it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from .arguments._parser import add_all, flag, log_level, one_of, option, repeatable
from .clients._connection import DEFAULT_SERVERS


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Run a Kafka-protocol broker. When it accepts connections it prints one line, "
        "'trionet broker ready: PLAINTEXT://HOST:PORT', on standard output; log lines go to "
        "standard error. SIGTERM or Ctrl-C stops it gracefully; a second one stops it without "
        "waiting for outstanding responses."
    )
    add_all(
        parser,
        option(
            "--listen [PROTOCOL://]HOST:PORT",
            f"address to listen on; port 0 picks a free one (default: {DEFAULT_SERVERS}, "
            "or the listeners of --config or --set); the protocol defaults to PLAINTEXT",
        ),
        one_of(
            option("--data DIR", "keep topics and records in this folder"),
            flag(
                "--memory",
                "keep everything in memory (the default unless --config or --set sets log.dirs)",
            ),
        ),
        option(
            "--brokers N",
            "number of nodes to run over the same data; each listens on ports one higher than the "
            "previous one (default: 1)",
            type=int,
            default=1,
        ),
        option("--config FILE", "a Kafka server.properties file, KRaft mode included"),
        repeatable("--set KEY=VALUE", "one Kafka setting; may be repeated; overrides --config"),
        flag(
            "--dashboard",
            "show the dashboard on this terminal instead of log lines; q also stops the broker",
        ),
        flag(
            "--faults",
            "let the dashboard inject faults, to see what clients do; requests take longer, and "
            "the last 10,000 are kept in memory",
        ),
        one_of(
            flag(
                "--describe-altered-settings",
                "do not run a broker; instead list the broker settings that clients have altered "
                "in this data folder",
            ),
            option(
                "--delete-altered-setting KEY",
                "do not run a broker; instead delete this setting from those that clients have "
                "altered in this data folder, for a broker that cannot be reached with it",
            ),
            flag(
                "--reset-altered-settings",
                "do not run a broker; instead delete the broker settings that clients have altered "
                "in this data directory, for a broker that cannot start or be reached with them; "
                "topic settings are kept",
            ),
            option(
                "--add-scram NAME",
                "do not run a broker; instead create SCRAM credentials for a user in this data "
                "folder; the password is the first line of standard input, or of --password-file",
            ),
        ),
        option("--password-file FILE", "file that --add-scram reads the password from"),
        log_level(),
    )


def run(arguments: Namespace) -> int:
    """Run the command and return the exit status; see :func:`._broker_run.run_broker`."""
    from ._broker_run import run_broker  # importing the broker is slow, and --help must be fast

    return run_broker(arguments)
