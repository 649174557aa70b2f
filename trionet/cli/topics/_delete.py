"""``trionet topics delete``: delete topics and all their records."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ApiError

from ..arguments._name_patterns import add_regex_argument
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..clients._topic_selection import selected_names
from ..terminal._confirmation import add_confirmation_argument, confirmed
from ..terminal._output import Table, add_format_arguments, print_message, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="topic names")
    add_regex_argument(parser, "topics")
    parser.add_argument(
        "--if-exists", action="store_true", help="do not fail if a topic does not exist"
    )
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all topics were deleted, 1 if not."""
    return run_with_admin(arguments, partial(_delete, arguments))


async def _delete(arguments: argparse.Namespace, admin: Admin) -> int:
    from trionet.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION

    names = await selected_names(arguments, admin)
    if not names:
        print_message(arguments, "no topic matches")
        return 0 if arguments.if_exists else 1
    what = f"topic {names[0]}" if len(names) == 1 else f"{len(names)} topics ({', '.join(names)})"
    if not confirmed(arguments, f"delete {what} and all records"):
        return 1
    results = await admin.delete_topics(names)
    errors = results.errors
    for name, error in results.errors.items():
        is_gone = isinstance(error, ApiError) and error.error_code == UNKNOWN_TOPIC_OR_PARTITION
        if arguments.if_exists and is_gone:
            print_message(arguments, f"topic {name} does not exist")
            del errors[name]
    deleted = [name for name in names if results[name] is None]
    return write_results(
        arguments, Table(("deleted",), [(name,) for name in deleted]), errors.values()
    )
