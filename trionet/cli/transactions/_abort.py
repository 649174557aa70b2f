"""``trionet transactions abort``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirming_argument, confirmed
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Abort what transactional ids have open, and take them from their producers, which can do "
        "no more."
    )
    parser.add_argument("ids", metavar="ID", nargs="+", help="a transactional.id")
    add_confirming_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all are aborted, 1 not all."""
    ids = list(dict.fromkeys(arguments.ids))
    if not confirmed(arguments, f"abort what {', '.join(ids)} has open, and fence its producers"):
        return 1
    return run_with_admin(arguments, partial(_abort, arguments, ids))


async def _abort(arguments: argparse.Namespace, ids: list[str], admin: Admin) -> int:
    from trionet.client.admin.groups._transactions import FencedProducer

    results = await admin.fence_producers(ids)
    rows = [
        (id, each.producer_id, each.producer_epoch)
        for id, each in results.items()
        if isinstance(each, FencedProducer)
    ]
    return write_results(
        arguments,
        Table(("transactional_id", "producer_id", "epoch"), rows),
        results.errors.values(),
    )
