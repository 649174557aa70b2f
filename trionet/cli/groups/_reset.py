"""``trionet groups reset``: reset the committed offsets of a group."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from ..arguments._times import HELP, allow_times, parse_time
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, print_message, write_results

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin

    from ._reset_targets import Topics

# In other states the group has members, which would overwrite the offsets (Kafka:
# ConsumerGroupCommand.resetOffsets).
_INACTIVE: Final = frozenset({"Empty", "Dead"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    allow_times(parser)
    parser.description = (
        "Reset the committed offsets of a group. The new offsets are only shown unless --execute "
        "is given. The group must have no members. Offsets out of range become the start or end."
    )
    parser.add_argument("group", metavar="GROUP", help="group name; the group need not exist")
    parser.add_argument(
        "-t",
        "--topics",
        "--topic",
        dest="topics",
        action="append",
        default=[],
        metavar="TOPIC[:N,...]",
        help="a topic, optionally with partitions, also one without committed offsets; may be "
        "repeated (default: all topics with committed offsets)",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--to-earliest",
        "--to-start",
        dest="earliest",
        action="store_true",
        help="to the start of the log",
    )
    where.add_argument(
        "--to-latest", "--to-end", dest="latest", action="store_true", help="to the end of the log"
    )
    where.add_argument(
        "--to-current", dest="current", action="store_true", help="to the current committed offsets"
    )
    where.add_argument("--to-offset", dest="offset", type=int, metavar="N", help="to this offset")
    where.add_argument(
        "--to-time",
        "--to-datetime",
        dest="time",
        metavar="TIME",
        help=f"to the first records at or after this time: {HELP}",
    )
    where.add_argument(
        "--shift-by",
        dest="shift",
        type=int,
        metavar="N",
        help="by N offsets forward, or backward with -N",
    )
    where.add_argument(
        "--to-group",
        dest="from_group",
        metavar="GROUP",
        help="to the committed offsets of another group",
    )
    where.add_argument(
        "--to-file",
        "--from-file",
        dest="file",
        metavar="FILE",
        help="to the offsets in a file with rows of topic, partition and offset, such as `trionet "
        "groups describe --format csv` and this command print; - is standard input",
    )
    parser.add_argument(
        "--execute", action="store_true", help="apply the reset instead of only showing it"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were reset or shown, otherwise 1."""
    from ..arguments._topic_partitions import parse_topic, read_offsets

    topics = [parse_topic(text) for text in arguments.topics]
    if arguments.time is not None:
        parse_time(arguments.time, datetime.now(UTC))  # reject an invalid time before connecting
    from_file = None if arguments.file is None else read_offsets(arguments.file)
    return run_with_admin(arguments, partial(_reset, arguments, topics, from_file))


async def _reset(
    arguments: argparse.Namespace,
    topics: Topics,
    from_file: Mapping[TopicPartition, int] | None,
    admin: Admin,
) -> int:
    from trionet.client._topic_partition import TopicPartition

    from ._reset_plan import Move, moves
    from ._reset_targets import find, state_of

    state = await state_of(admin, arguments.group)
    if state not in _INACTIVE:
        print_message(
            arguments,
            f"group {arguments.group} is {state}: stop all of its members before resetting it",
        )
        return 1
    found = await find(arguments, topics, from_file, admin)
    planned = moves(found.requested, found.committed, found.limits)
    errors = list(found.errors)
    if arguments.execute:
        results = await admin.alter_group_offsets(
            arguments.group, {TopicPartition(m.topic, m.partition): m.offset for m in planned}
        )
        errors += results.errors.values()
        planned = [move for move in planned if results[TopicPartition(*move[:2])] is None]
    status = write_results(arguments, Table(Move._fields, planned), errors)
    if not arguments.execute:
        print_message(arguments, "nothing was changed; use --execute to apply the reset")
    return status
