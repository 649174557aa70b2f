"""``trionet topics offsets``: show the offsets of partitions."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from ..arguments._name_patterns import add_regex_argument
from ..arguments._times import HELP, allow_times, parse_time, time_text
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..clients._topic_selection import describe_selected
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin
    from trionet.errors import TrionetError

# The words of Kafka's GetOffsetShell, which also accepts -1 to -5.
SPECS: Final = (
    "latest",
    "earliest",
    "max-timestamp",
    "earliest-local",
    "latest-tiered",
    "earliest-pending-upload",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    allow_times(parser)
    parser.description = (
        "Show the start and end offsets of partitions and the number of offsets between them; or, "
        "with --time, the first offset at or after a time."
    )
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
    parser.add_argument(
        "-p",
        "--partitions",
        metavar="N,...",
        action="append",
        default=[],
        help="only these partitions (default: all)",
    )
    parser.add_argument(
        "-t",
        "--time",
        metavar="TIME",
        help=f"show the first offset at or after this time: {HELP}; or one of {', '.join(SPECS)}",
    )
    parser.add_argument(
        "--read-committed",
        action="store_true",
        help="end at the last stable offset, before the first open transaction",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were shown, 1 if some failed."""
    from ..arguments._topic_partitions import parse_partitions

    numbers = parse_partitions(arguments.partitions) if arguments.partitions else None
    spec = None if arguments.time is None else _spec(arguments.time)
    return run_with_admin(arguments, partial(_offsets, arguments, numbers, spec))


def _spec(text: str) -> int:
    from trionet.client.admin._partitions import OffsetSpec

    if text in SPECS:
        return OffsetSpec[text.upper().replace("-", "_")]
    return parse_time(text, datetime.now(UTC))


async def _offsets(
    arguments: argparse.Namespace, numbers: list[int] | None, spec: int | None, admin: Admin
) -> int:
    from trionet.client._api_errors import api_error
    from trionet.client._topic_partition import TopicPartition
    from trionet.protocol.error_codes import LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION

    topics, errors = await describe_selected(arguments, admin)
    led = []
    for topic in topics:
        for number in sorted(topic.partitions) if numbers is None else numbers:
            key = TopicPartition(topic.name, number)
            part = topic.partitions.get(number)
            # The request would be retried until it times out if a partition had no leader.
            if part is None or part.leader < 0:
                code = UNKNOWN_TOPIC_OR_PARTITION if part is None else LEADER_NOT_AVAILABLE
                errors.append(api_error(code, str(key)))
            else:
                led.append(key)
    make = _limits if spec is None else partial(_at, spec)
    table, failed = await make(arguments, admin, led)
    return write_results(arguments, table, [*errors, *failed])


async def _limits(
    arguments: argparse.Namespace, admin: Admin, partitions: list[TopicPartition]
) -> tuple[Table, list[TrionetError]]:
    from ..clients._partition_offsets import start_and_end

    found, errors = await start_and_end(admin, partitions, read_committed=arguments.read_committed)
    rows = [
        (*key, start, end, None if start is None or end is None else end - start)
        for key, (start, end) in found.items()
    ]
    return Table(("topic", "partition", "start_offset", "end_offset", "offsets"), rows), errors


async def _at(
    spec: int, arguments: argparse.Namespace, admin: Admin, partitions: list[TopicPartition]
) -> tuple[Table, list[TrionetError]]:
    from trionet.client.admin._partitions import ListedOffset

    results = await admin.list_offsets(
        dict.fromkeys(partitions, spec), read_committed=arguments.read_committed
    )
    rows = [
        (*key, each.offset, time_text(each.timestamp) if each.timestamp >= 0 else None)
        for key, each in results.items()
        if isinstance(each, ListedOffset)
    ]
    table = Table(("topic", "partition", "offset", "timestamp"), rows)
    return table, list(results.errors.values())
