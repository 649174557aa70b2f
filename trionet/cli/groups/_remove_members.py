"""``trionet groups remove-members``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirming_argument, confirmed
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Remove members from a classic group; the others get their partitions at once. A member "
        "that still runs joins again."
    )
    parser.add_argument("group", metavar="GROUP", help="the name of the group")
    parser.add_argument(
        "instances",
        metavar="INSTANCE",
        nargs="*",
        help="the group.instance.id of a static member",
    )
    parser.add_argument("--all", action="store_true", help="all members, static or not")
    add_confirming_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all were removed, 1 not all."""
    if arguments.all == bool(arguments.instances):
        raise ConfigError("either the names of static members are wanted, or --all")
    what = "all members" if arguments.all else ", ".join(arguments.instances)
    if not confirmed(arguments, f"remove {what} from group {arguments.group}"):
        return 1
    return run_with_admin(arguments, partial(_remove, arguments))


async def _remove(arguments: argparse.Namespace, admin: Admin) -> int:
    results = await admin.remove_members(arguments.group, arguments.instances or None)
    rows = [(name,) for name, error in results.items() if error is None]
    return write_results(arguments, Table(("removed",), rows), results.errors.values())
