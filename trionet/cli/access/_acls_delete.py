"""``trionet configs acls delete``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirming_argument, confirmed
from ..terminal._output import add_format_arguments, tell, write_results
from ._acl_arguments import acl_table, add_acl_arguments, filters

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.access._acls import AclFilter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = "Delete what was allowed or denied. Without options all entries are meant."
    add_acl_arguments(parser, is_filter=True)
    add_confirming_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all were deleted, 1 not all."""
    return run_with_admin(arguments, partial(_delete, arguments, filters(arguments)))


async def _delete(arguments: argparse.Namespace, wanted: list[AclFilter], admin: Admin) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    found = {entry: None for each in wanted for entry in await admin.describe_acls(each)}
    if not found:
        tell(arguments, "there is no such entry")
        return 1
    entries = "1 entry" if len(found) == 1 else f"{len(found)} entries"
    if not confirmed(arguments, f"delete {entries} for access"):
        return 1
    results = await admin.delete_acls(wanted)
    deleted, errors = [], list(results.errors.values())
    for matched in results.values():
        if isinstance(matched, dict):
            errors += matched.errors.values()
            deleted += [entry for entry, error in matched.items() if error is None]
    return write_results(arguments, acl_table(list(dict.fromkeys(deleted))), errors)
