"""``trionet configs users list``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument("users", metavar="USER", nargs="*", help="these only (default: all)")
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 listed, 1 a user has no password."""
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
