"""``trionet cluster log-dirs``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..arguments._numbers import INT32_MAX, whole
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write_results
from ..topics._topic_selection import describe_chosen

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.cluster._log_dirs import LogDirs
    from trionet.errors import TrionetError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument(
        "topics", metavar="TOPIC", nargs="*", help="only what they have of these topics"
    )
    parser.add_argument(
        "-i",
        "--broker-id",
        dest="broker_ids",
        metavar="ID",
        type=whole(0, INT32_MAX),
        action="append",
        default=[],
        help="only of this broker; may be given many times",
    )
    parser.add_argument("-p", "--partitions", action="store_true", help="each partition by itself")
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all is shown, 1 something could not be."""
    arguments.regex = False
    return run_with_admin(arguments, partial(_log_dirs, arguments))


async def _log_dirs(arguments: argparse.Namespace, admin: Admin) -> int:
    from trionet.client._topic_partition import TopicPartition

    errors: list[TrionetError] = []
    wanted = None
    if arguments.topics:
        topics, errors = await describe_chosen(arguments, admin)
        wanted = [
            TopicPartition(each.name, number) for each in topics for number in each.partitions
        ]
    results = await admin.describe_log_dirs(arguments.broker_ids or None, wanted)
    errors += results.errors.values()
    found = {id: dirs for id, dirs in sorted(results.items()) if isinstance(dirs, dict)}
    for dirs in found.values():
        errors += dirs.errors.values()
    return write_results(
        arguments, _by_partition(found) if arguments.partitions else _by_folder(found), errors
    )


def _by_folder(found: dict[int, LogDirs]) -> Table:
    rows = [
        (
            id,
            path,
            len(folder.replicas),
            sum(each.bytes for each in folder.replicas.values()),
            folder.total_bytes,
            folder.usable_bytes,
        )
        for id, dirs in found.items()
        for path, folder in dirs.items()
        if not isinstance(folder, Exception)
    ]
    return Table(("broker", "path", "replicas", "bytes", "disk_bytes", "free_bytes"), rows)


def _by_partition(found: dict[int, LogDirs]) -> Table:
    rows = [
        (id, *key, path, each.bytes, each.offset_lag, each.is_future)
        for id, dirs in found.items()
        for path, folder in dirs.items()
        if not isinstance(folder, Exception)
        for key, each in sorted(folder.replicas.items())
    ]
    fields = ("broker", "topic", "partition", "path", "bytes", "offset_lag", "future")
    return Table(fields, rows)
