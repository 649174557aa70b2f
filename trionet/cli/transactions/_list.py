"""``trionet transactions list``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..arguments._numbers import INT64_MAX, whole
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments, names_of
from ..terminal._output import Table, add_format_arguments, write

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument(
        "-s",
        "--states",
        action="append",
        default=[],
        metavar="STATE,...",
        help="in these states only, such as Ongoing",
    )
    parser.add_argument(
        "--producer-id",
        type=whole(0, INT64_MAX),
        action="append",
        default=[],
        metavar="ID",
        help="of this producer only; may be given many times",
    )
    parser.add_argument(
        "--longer-than-ms",
        type=whole(0, INT64_MAX),
        metavar="N",
        help="open for longer than this only (Kafka 3.8)",
    )
    parser.add_argument(
        "--pattern", metavar="REGEX", help="ids that this fits as a whole (RE2; Kafka 4.1)"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 listed."""
    return run_with_admin(arguments, partial(_list, arguments))


async def _list(arguments: argparse.Namespace, admin: Admin) -> int:
    found = await admin.list_transactions(
        states=names_of(arguments.states),
        producer_ids=arguments.producer_id,
        duration_ms=arguments.longer_than_ms,
        pattern=arguments.pattern,
    )
    rows = [(id, each.producer_id, each.state) for id, each in sorted(found.items())]
    write(arguments.format, Table(("transactional_id", "producer_id", "state"), rows))
    return 0
