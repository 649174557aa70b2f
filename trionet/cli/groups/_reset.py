"""``trionet groups reset``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from ..arguments._times import HELP, allow_times, parse_time
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, tell, write_results

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin

    from ._reset_targets import Topics

# A group in another state has members, which would go on where they are (Kafka:
# ConsumerGroupCommand.resetOffsets).
_INACTIVE: Final = frozenset({"Empty", "Dead"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    allow_times(parser)
    parser.description = (
        "Let a group begin elsewhere. It is shown what would be done; --execute does it. The group "
        "must have no members. An offset that is not there becomes the first or the last one."
    )
    parser.add_argument("group", metavar="GROUP", help="the name of the group; it may be a new one")
    parser.add_argument(
        "-t",
        "--topics",
        "--topic",
        dest="topics",
        action="append",
        default=[],
        metavar="TOPIC[:N,...]",
        help="only this topic, or these partitions of it; also one that the group has not read; "
        "may be given many times (default: all that the group has committed)",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--to-earliest",
        "--to-start",
        dest="earliest",
        action="store_true",
        help="to the first records that are left",
    )
    where.add_argument(
        "--to-latest", "--to-end", dest="latest", action="store_true", help="behind the last ones"
    )
    where.add_argument(
        "--to-current", dest="current", action="store_true", help="to what is committed now"
    )
    where.add_argument("--to-offset", dest="offset", type=int, metavar="N", help="to this offset")
    where.add_argument(
        "--to-time",
        "--to-datetime",
        dest="time",
        metavar="TIME",
        help=f"to the first records from this time on: {HELP}",
    )
    where.add_argument(
        "--shift-by",
        dest="shift",
        type=int,
        metavar="N",
        help="so many offsets ahead, or back with -N",
    )
    where.add_argument(
        "--to-group", dest="from_group", metavar="GROUP", help="to what another group has committed"
    )
    where.add_argument(
        "--to-file",
        "--from-file",
        dest="file",
        metavar="FILE",
        help="to the offsets of a file, with rows of topic, partition and offset, such as `trionet "
        "groups describe --format csv` and this command print; - is standard input",
    )
    parser.add_argument(
        "--execute", action="store_true", help="do it, instead of showing what would be done"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 done or shown, 1 something failed."""
    from ..arguments._topic_partitions import parse_topic, read_offsets

    topics = [parse_topic(text) for text in arguments.topics]
    if arguments.time is not None:
        parse_time(
            arguments.time, datetime.now(UTC)
        )  # what is wrong is told before anybody is asked
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
        tell(
            arguments,
            f"group {arguments.group} is {state}: it can only be reset when its members have left",
        )
        return 1
    found = await find(arguments, topics, from_file, admin)
    planned = moves(found.asked, found.committed, found.limits)
    errors = list(found.errors)
    if arguments.execute:
        results = await admin.alter_group_offsets(
            arguments.group, {TopicPartition(m.topic, m.partition): m.offset for m in planned}
        )
        errors += results.errors.values()
        planned = [move for move in planned if results[TopicPartition(*move[:2])] is None]
    status = write_results(arguments, Table(Move._fields, planned), errors)
    if not arguments.execute:
        tell(arguments, "nothing was changed; --execute does it")
    return status
