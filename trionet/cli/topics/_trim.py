"""``trionet topics trim``: delete the records before an offset or a time."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet._util._text import counted
from trionet.errors import ConfigError

from ..arguments._numbers import INT64_MAX, is_natural
from ..arguments._times import HELP, parse_time
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirmation_argument, confirmed
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin
    from trionet.errors import TrionetError

_END: Final = "end"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Delete the records of a topic before an offset or a time (Kafka: kafka-delete-records)."
    )
    parser.add_argument(
        "topic", metavar="TOPIC", nargs="?", help="the topic; omit with --from-file"
    )
    before = parser.add_mutually_exclusive_group(required=True)
    before.add_argument(
        "-o",
        "--offset",
        metavar="OFFSET",
        help=f"the first offset to keep; '{_END}' keeps nothing, @TIME keeps the records at or "
        f"after that time: {HELP}",
    )
    before.add_argument(
        "-f",
        "--from-file",
        metavar="FILE",
        help="a file with the first offsets to keep, as rows of topic, partition and offset in CSV "
        "or JSON; - is standard input",
    )
    parser.add_argument(
        "-p",
        "--partitions",
        metavar="N,...",
        action="append",
        default=[],
        help="only these partitions (default: all)",
    )
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were deleted, 1 if some were not."""
    from ..arguments._topic_partitions import parse_partitions, read_offsets

    if (arguments.topic is None) != (arguments.from_file is not None):
        raise ConfigError("give either TOPIC with --offset, or --from-file alone")
    if arguments.from_file is not None:
        if arguments.partitions:
            raise ConfigError("--partitions cannot be combined with --from-file, which names them")
        offsets = read_offsets(arguments.from_file)
        return run_with_admin(arguments, partial(_trim, arguments, offsets, []))
    numbers = parse_partitions(arguments.partitions) if arguments.partitions else None
    _parse(arguments.offset)
    return run_with_admin(arguments, partial(_trim_topic, arguments, numbers))


def _parse(text: str) -> tuple[bool, int]:
    """Return whether the text is a time, and the time or offset, which is -1 for the end."""
    if text == _END:
        return False, -1
    if text.startswith("@"):
        return True, parse_time(text[1:], datetime.now(UTC))
    if is_natural(text, INT64_MAX):
        return False, int(text)
    raise ConfigError(
        f"--offset {text}: expected a number from 0 to {INT64_MAX}, '{_END}', or @TIME"
    )


async def _trim_topic(
    arguments: argparse.Namespace, numbers: list[int] | None, admin: Admin
) -> int:
    from trionet.client._topic_partition import TopicPartition

    from ..clients._partition_offsets import offsets_at

    described = (await admin.describe_topics([arguments.topic])).checked()[arguments.topic]
    if numbers is not None and (unknown := [n for n in numbers if n not in described.partitions]):
        raise ConfigError(
            f"partition {unknown[0]} does not exist; topic {arguments.topic} has"
            f" {counted(len(described.partitions), 'partition')}"
        )
    partitions = [
        TopicPartition(arguments.topic, number)
        for number in sorted(described.partitions)
        if numbers is None or number in numbers
    ]
    is_time, value = _parse(arguments.offset)
    if not is_time:
        return await _trim(arguments, dict.fromkeys(partitions, value), [], admin)
    offsets, errors = await offsets_at(admin, partitions, value)
    return await _trim(arguments, offsets, errors, admin)


async def _trim(
    arguments: argparse.Namespace,
    offsets: dict[TopicPartition, int],
    errors: list[TrionetError],
    admin: Admin,
) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    shown = ", ".join(
        f"{key} before {'the end' if offset == -1 else offset}" for key, offset in offsets.items()
    )
    if offsets and not confirmed(arguments, f"delete all records of {shown}"):
        return 1
    results = await admin.delete_records(offsets)
    rows = [
        (key.topic, key.partition, start)
        for key, start in results.items()
        if isinstance(start, int)
    ]
    return write_results(
        arguments,
        Table(("topic", "partition", "start_offset"), rows),
        [*errors, *results.errors.values()],
    )
