"""``trionet configs users``: list, set and delete SCRAM credentials."""

from __future__ import annotations

import getpass
import sys
from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..arguments._parser import Subcommands, argument, option
from ..clients._admin import ADMIN_ARGUMENTS, run_with_admin, with_admin
from ..clients._connection import first_line_of
from ..terminal._output import YES, Table, confirmed, write_results
from ..terminal._streams import check_input

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._credentials import ScramMechanism

COMMANDS: Final = Subcommands()

_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_MECHANISM: Final = option(
    "-m, --mechanism",
    f"SCRAM mechanism (default: {_MECHANISMS[1]})",
    choices=_MECHANISMS,
    default=_MECHANISMS[1],
)


def _mechanism(arguments: Namespace) -> ScramMechanism:
    from trionet.client.admin._credentials import ScramMechanism

    return ScramMechanism[arguments.mechanism.replace("-", "_")]


@COMMANDS.command(
    "list",
    "list users with SCRAM credentials",
    argument("users", "USER", "only these users (default: all)", nargs="*"),
    *ADMIN_ARGUMENTS,
)
@with_admin
async def _list(arguments: Namespace, admin: Admin) -> int:
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
_ITERATIONS_MIN: Final = 4096
_ITERATIONS_MAX: Final = 16384


@COMMANDS.command(
    "set",
    "set the SCRAM password of a user",
    argument("user", "USER", "user name"),
    _MECHANISM,
    option("--password-file FILE", "file with the password in its first line"),
    option(
        "--iterations N",
        f"hash iterations, {_ITERATIONS_MIN} to {_ITERATIONS_MAX} (default: {_ITERATIONS_MIN})",
        type=int,
        default=_ITERATIONS_MIN,
    ),
    *ADMIN_ARGUMENTS,
    description="Set the SCRAM password of a user. The password is prompted for on a terminal, "
    "otherwise it is the first line of standard input or of --password-file. Only salted hashes "
    "are sent to the broker.",
)
def _run_set(arguments: Namespace) -> int:
    if not _ITERATIONS_MIN <= arguments.iterations <= _ITERATIONS_MAX:
        raise ConfigError(
            f"--iterations {arguments.iterations}: expected {_ITERATIONS_MIN} to {_ITERATIONS_MAX}"
        )
    password = _password(arguments)
    if not password:
        raise ConfigError("the password is empty")
    return run_with_admin(arguments, partial(_set, arguments, password))


def _password(arguments: Namespace) -> str:
    try:
        if arguments.password_file is not None:
            return first_line_of(arguments.password_file).rstrip("\r\n")
        check_input()
        if sys.stdin.isatty():
            first = getpass.getpass(f"password of {arguments.user}: ")
            if getpass.getpass("repeat password: ") != first:
                raise ConfigError("the passwords do not match; nothing was changed")
            return first
        return sys.stdin.readline().rstrip("\r\n")
    except OSError as error:
        name = arguments.password_file or "standard input"
        raise ConfigError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError("the password is not valid UTF-8") from None


async def _set(arguments: Namespace, password: str, admin: Admin) -> int:
    from trionet.client.admin._credentials import ScramUpsertion

    upsertion = ScramUpsertion(
        arguments.user, _mechanism(arguments), password, arguments.iterations
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


@COMMANDS.command(
    "delete",
    "delete the SCRAM credentials of users",
    argument("users", "USER", "user names", nargs="+"),
    _MECHANISM,
    YES,
    *ADMIN_ARGUMENTS,
)
def _run_delete(arguments: Namespace) -> int:
    users = list(dict.fromkeys(arguments.users))
    what = f"delete the {arguments.mechanism} credentials of {', '.join(users)}"
    if not confirmed(arguments, what):
        return 1
    return run_with_admin(arguments, partial(_delete, arguments, users))


async def _delete(arguments: Namespace, users: list[str], admin: Admin) -> int:
    from trionet.client.admin._credentials import ScramDeletion

    mechanism = _mechanism(arguments)
    results = await admin.alter_user_scram_credentials(
        [ScramDeletion(each, mechanism) for each in users]
    )
    rows = [(user, arguments.mechanism) for user, error in results.items() if error is None]
    return write_results(arguments, Table(("user", "mechanism"), rows), results.errors.values())
