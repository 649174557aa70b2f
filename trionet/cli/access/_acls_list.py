"""``trionet configs acls list``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import add_format_arguments, write
from ._acl_arguments import acl_table, add_acl_arguments, filters

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.access._acls import AclFilter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    add_acl_arguments(parser, is_filter=True)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 listed."""
    return run_with_admin(arguments, partial(_list, arguments, filters(arguments)))


async def _list(arguments: argparse.Namespace, wanted: list[AclFilter], admin: Admin) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    found = {entry: None for each in wanted for entry in await admin.describe_acls(each)}
    write(arguments.format, acl_table(list(found)))
    return 0
