"""``trionet configs acls delete``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet._util._counted import counted

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirmation_argument, confirmed
from ..terminal._output import add_format_arguments, print_message, write_results
from ._acl_arguments import acl_table, add_acl_arguments, filters

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.access._acls import AclFilter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = "Delete the matching ACLs, all of them if no option is given."
    add_acl_arguments(parser, is_filter=True)
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all were deleted, 1 some were not."""
    return run_with_admin(arguments, partial(_delete, arguments, filters(arguments)))


async def _delete(arguments: argparse.Namespace, filters_: list[AclFilter], admin: Admin) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    found = {entry: None for each in filters_ for entry in await admin.describe_acls(each)}
    if not found:
        print_message(arguments, "no matching ACLs")
        return 1
    if not confirmed(arguments, f"delete {counted(len(found), 'ACL')}"):
        return 1
    results = await admin.delete_acls(filters_)
    deleted, errors = [], list(results.errors.values())
    for matched in results.values():
        if isinstance(matched, dict):
            errors += matched.errors.values()
            deleted += [entry for entry, error in matched.items() if error is None]
    return write_results(arguments, acl_table(list(dict.fromkeys(deleted))), errors)
