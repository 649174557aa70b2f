"""``trionet topics list``: list topics."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..arguments._name_patterns import add_regex_argument
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..clients._topic_selection import describe_selected
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument(
        "topics", metavar="TOPIC", nargs="*", help="only these topics (default: all)"
    )
    add_regex_argument(parser, "topics")
    parser.add_argument(
        "-i",
        "--internal",
        action="store_true",
        help="include Kafka's internal topics if no TOPIC is given",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, or 1 if some failed."""
    return run_with_admin(arguments, partial(_list, arguments))


async def _list(arguments: argparse.Namespace, admin: Admin) -> int:
    topics, errors = await describe_selected(arguments, admin)
    rows = [
        (
            each.name,
            len(each.partitions),
            max((len(part.replicas) for part in each.partitions.values()), default=0),
            each.id,
            each.is_internal,
        )
        for each in topics
    ]
    fields = ("name", "partitions", "replicas", "id", "internal")
    return write_results(
        arguments,
        Table(fields[:3], [row[:3] for row in rows]),
        errors,
        Table(fields, rows).documents(),
        as_csv=Table(fields, rows),
    )
