"""``trionet configs acls create``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import add_format_arguments, write_results
from ._acl_arguments import acl_table, add_acl_arguments, bindings

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.access._acls import AclBinding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Allow or deny somebody something: everybody named, every operation, everything that it is "
        "about."
    )
    add_acl_arguments(parser, is_filter=False)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all entries are there, 1 not all."""
    return run_with_admin(arguments, partial(_create, arguments, bindings(arguments)))


async def _create(arguments: argparse.Namespace, entries: list[AclBinding], admin: Admin) -> int:
    results = await admin.create_acls(entries)
    return write_results(
        arguments,
        acl_table([each for each in entries if results[each] is None]),
        results.errors.values(),
    )
