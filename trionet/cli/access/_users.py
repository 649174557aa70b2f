"""``trionet configs users``: list, set and delete SCRAM credentials."""

from __future__ import annotations

import argparse
import getpass
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..arguments._parser import Subcommands, Verb, run
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments, first_line_of
from ..terminal._confirmation import add_confirmation_argument, confirmed
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._credentials import ScramMechanism

NAMES: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def add_mechanism_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--mechanism``."""
    parser.add_argument(
        "-m",
        "--mechanism",
        choices=NAMES,
        default=NAMES[1],
        help=f"SCRAM mechanism (default: {NAMES[1]})",
    )


def mechanism(name: str) -> ScramMechanism:
    """Return the SCRAM mechanism with this name."""
    from trionet.client.admin._credentials import ScramMechanism

    return ScramMechanism[name.replace("-", "_")]


def _add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument("users", metavar="USER", nargs="*", help="only these users (default: all)")
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_list(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, or 1 if a user has no credentials."""
    return run_with_admin(arguments, partial(_list, arguments))


async def _list(arguments: argparse.Namespace, admin: Admin) -> int:
    results = await admin.describe_user_scram_credentials(
        list(dict.fromkeys(arguments.users)) or None
    )
    rows = [
        (user, each.name.replace("_", "-"), iterations)
        for user, mechanisms in sorted(results.items())
        if isinstance(mechanisms, dict)
        for each, iterations in mechanisms.items()
    ]
    return write_results(
        arguments, Table(("user", "mechanism", "iterations"), rows), results.errors.values()
    )


# Kafka: ScramMechanism, and the maximum of ScramControlManager.
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


def _add_set_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Set the SCRAM password of a user. The password is prompted for on a terminal, otherwise "
        "it is the first line of standard input or of --password-file. Only salted hashes are sent "
        "to the broker."
    )
    parser.add_argument("user", metavar="USER", help="user name")
    add_mechanism_argument(parser)
    parser.add_argument(
        "--password-file", metavar="FILE", help="file with the password in its first line"
    )
    parser.add_argument(
        "--iterations",
        type=int,
        default=ITERATIONS_MIN,
        metavar="N",
        help=f"hash iterations, {ITERATIONS_MIN} to {ITERATIONS_MAX} (default: {ITERATIONS_MIN})",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_set(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if set, 1 if rejected."""
    if not ITERATIONS_MIN <= arguments.iterations <= ITERATIONS_MAX:
        raise ConfigError(
            f"--iterations {arguments.iterations}: expected {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        )
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
            if getpass.getpass("repeat password: ") != first:
                raise ConfigError("the passwords do not match; nothing was changed")
            return first
        return "" if sys.stdin is None else sys.stdin.readline().rstrip("\r\n")
    except OSError as error:
        name = arguments.password_file or "standard input"
        raise ConfigError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError("the password is not valid UTF-8") from None


async def _set(arguments: argparse.Namespace, password: str, admin: Admin) -> int:
    from trionet.client.admin._credentials import ScramUpsertion

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


def _add_delete_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument("users", metavar="USER", nargs="+", help="user names")
    add_mechanism_argument(parser)
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_delete(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were deleted, 1 if some were not."""
    users = list(dict.fromkeys(arguments.users))
    what = f"delete the {arguments.mechanism} credentials of {', '.join(users)}"
    if not confirmed(arguments, what):
        return 1
    return run_with_admin(arguments, partial(_delete, arguments, users))


async def _delete(arguments: argparse.Namespace, users: list[str], admin: Admin) -> int:
    from trionet.client.admin._credentials import ScramDeletion

    kind = mechanism(arguments.mechanism)
    results = await admin.alter_user_scram_credentials(
        [ScramDeletion(each, kind) for each in users]
    )
    rows = [(user, arguments.mechanism) for user, error in results.items() if error is None]
    return write_results(arguments, Table(("user", "mechanism"), rows), results.errors.values())


COMMANDS: Final = {
    "list": Verb("list users with SCRAM credentials", _add_list_arguments, _run_list),
    "set": Verb("set the SCRAM password of a user", _add_set_arguments, _run_set),
    "delete": Verb("delete the SCRAM credentials of users", _add_delete_arguments, _run_delete),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
