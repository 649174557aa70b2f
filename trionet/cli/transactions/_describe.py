"""``trionet transactions describe``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..arguments._times import time_text
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument("ids", metavar="ID", nargs="+", help="a transactional.id")
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all are shown, 1 something could not be."""
    return run_with_admin(arguments, partial(_describe, arguments))


async def _describe(arguments: argparse.Namespace, admin: Admin) -> int:
    from trionet.client.admin.groups._transactions import TransactionDescription

    results = await admin.describe_transactions(list(dict.fromkeys(arguments.ids)))
    rows = [
        (
            id,
            each.producer_id,
            each.producer_epoch,
            each.state,
            str(each.coordinator),
            each.timeout_ms,
            None if each.started_ms is None else time_text(each.started_ms),
            sorted(map(str, each.partitions)),
        )
        for id, each in results.items()
        if isinstance(each, TransactionDescription)
    ]
    fields = (
        "transactional_id",
        "producer_id",
        "epoch",
        "state",
        "coordinator",
        "timeout_ms",
        "started",
        "partitions",
    )
    return write_results(arguments, Table(fields, rows), results.errors.values())
