"""``trionet configs users delete``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirming_argument, confirmed
from ..terminal._output import Table, add_format_arguments, write_results
from ._scram_mechanisms import add_mechanism_argument, mechanism

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument("users", metavar="USER", nargs="+", help="the names of the users")
    add_mechanism_argument(parser)
    add_confirming_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all is done, 1 not all."""
    users = list(dict.fromkeys(arguments.users))
    what = f"take the password for {arguments.mechanism} from {', '.join(users)}"
    if not confirmed(arguments, what):
        return 1
    return run_with_admin(arguments, partial(_delete, arguments, users))


async def _delete(arguments: argparse.Namespace, users: list[str], admin: Admin) -> int:
    from trionet.client.admin.access._scram_credentials import ScramDeletion

    kind = mechanism(arguments.mechanism)
    results = await admin.alter_user_scram_credentials(
        [ScramDeletion(each, kind) for each in users]
    )
    rows = [(user, arguments.mechanism) for user, error in results.items() if error is None]
    return write_results(arguments, Table(("user", "mechanism"), rows), results.errors.values())
