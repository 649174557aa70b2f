"""``trionet groups delete-offsets``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirming_argument, confirmed
from ..terminal._output import Table, add_format_arguments, tell, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin

    from ._reset_targets import Topics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Make a group forget what it has committed in topics. Nobody in it may read them."
    )
    parser.add_argument("group", metavar="GROUP", help="the name of the group")
    parser.add_argument(
        "-t",
        "--topics",
        "--topic",
        dest="topics",
        action="append",
        required=True,
        metavar="TOPIC[:N,...]",
        help="a topic, or these partitions of it; may be given many times",
    )
    add_confirming_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all is forgotten, 1 not all."""
    from ..arguments._topic_partitions import parse_topic

    topics = [parse_topic(text) for text in arguments.topics]
    return run_with_admin(arguments, partial(_delete, arguments, topics))


async def _delete(arguments: argparse.Namespace, topics: Topics, admin: Admin) -> int:
    from trionet.client._topic_partition import TopicPartition

    from ._reset_targets import committed_by

    committed = await committed_by(admin, arguments.group)
    partitions = {
        *(key for key in committed if (key.topic, None) in topics),
        *(TopicPartition(topic, n) for topic, numbers in topics for n in numbers or ()),
    }
    if not partitions:
        tell(arguments, f"group {arguments.group} has committed nothing there")
        return 1
    shown = ", ".join(map(str, sorted(partitions)))
    if not confirmed(arguments, f"let group {arguments.group} forget its offsets of {shown}"):
        return 1
    results = await admin.delete_group_offsets(arguments.group, sorted(partitions))
    rows = [(*key, committed.get(key)) for key, error in results.items() if error is None]
    return write_results(
        arguments, Table(("topic", "partition", "offset"), rows), results.errors.values()
    )
