"""``trionet configs users set``."""

from __future__ import annotations

import argparse
import getpass
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..arguments._secret_files import first_line_of
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write_results
from ._scram_mechanisms import add_mechanism_argument, mechanism

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin

# Kafka: ScramMechanism, and ScramControlManager's limit.
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Give a user a password for SCRAM, or another one. It is asked for on a terminal, and is "
        "else the first line of standard input or of --password-file; it does not leave this "
        "process."
    )
    parser.add_argument("user", metavar="USER", help="the name of the user")
    add_mechanism_argument(parser)
    parser.add_argument("--password-file", metavar="FILE", help="a file with the password")
    parser.add_argument(
        "--iterations",
        type=int,
        default=ITERATIONS_MIN,
        metavar="N",
        help=f"how often it is hashed, {ITERATIONS_MIN} to {ITERATIONS_MAX} (default: "
        f"{ITERATIONS_MIN})",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 done, 1 refused."""
    if not ITERATIONS_MIN <= arguments.iterations <= ITERATIONS_MAX:
        raise ConfigError(f"--iterations: allowed: {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    password = _password(arguments)
    if not password:
        raise ConfigError("the password is empty")
    return run_with_admin(arguments, partial(_set, arguments, password))


def _password(arguments: argparse.Namespace) -> str:
    try:
        if arguments.password_file is not None:
            return first_line_of(arguments.password_file).rstrip("\r\n")
        if sys.stdin is not None and sys.stdin.isatty():
            first = getpass.getpass(f"password of {arguments.user}: ")
            if getpass.getpass("once more: ") != first:
                raise ConfigError("these are two passwords; nothing was changed")
            return first
        return "" if sys.stdin is None else sys.stdin.readline().rstrip("\r\n")
    except OSError as error:
        raise ConfigError(f"cannot read {arguments.password_file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError("the password is not UTF-8") from None


async def _set(arguments: argparse.Namespace, password: str, admin: Admin) -> int:
    from trionet.client.admin.access._scram_credentials import ScramUpsertion

    upsertion = ScramUpsertion(
        arguments.user, mechanism(arguments.mechanism), password, arguments.iterations
    )
    results = await admin.alter_user_scram_credentials([upsertion])
    rows = [
        (user, arguments.mechanism, arguments.iterations)
        for user, error in results.items()
        if error is None
    ]
    return write_results(
        arguments, Table(("user", "mechanism", "iterations"), rows), results.errors.values()
    )
