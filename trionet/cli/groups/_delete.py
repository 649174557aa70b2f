"""``trionet groups delete``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..arguments._name_patterns import add_regex_argument, matching
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirming_argument, confirmed
from ..terminal._output import Table, add_format_arguments, tell, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = "Delete groups, with what they have committed. They must have no members."
    parser.add_argument("groups", metavar="GROUP", nargs="+", help="the names of the groups")
    add_regex_argument(parser, "groups")
    add_confirming_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all were deleted, 1 not all."""
    return run_with_admin(arguments, partial(_delete, arguments))


async def _delete(arguments: argparse.Namespace, admin: Admin) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    names = list(dict.fromkeys(arguments.groups))
    if arguments.regex:
        names = matching(names, await admin.list_groups())
    if not names:
        tell(arguments, "no group has such a name")
        return 1
    what = f"group {names[0]}" if len(names) == 1 else f"{len(names)} groups ({', '.join(names)})"
    if not confirmed(arguments, f"delete {what} with all that is committed"):
        return 1
    results = await admin.delete_groups(names)
    rows = [(name,) for name in names if results[name] is None]
    return write_results(arguments, Table(("deleted",), rows), results.errors.values())
