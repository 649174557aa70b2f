"""``trionet topics producers``: show the producers of partitions."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..arguments._name_patterns import add_regex_argument
from ..arguments._times import time_text
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..clients._topic_selection import describe_selected
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Show the idempotent and transactional producers of partitions, and where their open "
        "transactions start."
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="topic names")
    add_regex_argument(parser, "topics")
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were shown, 1 if some failed."""
    return run_with_admin(arguments, partial(_producers, arguments))


async def _producers(arguments: argparse.Namespace, admin: Admin) -> int:
    from trionet.client._topic_partition import TopicPartition

    topics, errors = await describe_selected(arguments, admin)
    partitions = [
        TopicPartition(topic.name, part.number)
        for topic in topics
        for part in topic.partitions.values()
        if part.leader >= 0
    ]
    results = await admin.describe_producers(partitions)
    rows = [
        (
            *key,
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            time_text(each.last_timestamp) if each.last_timestamp >= 0 else None,
            each.coordinator_epoch,
            each.transaction_start_offset,
        )
        for key, states in results.items()
        if isinstance(states, list)
        for each in states
    ]
    fields = (
        "topic",
        "partition",
        "producer_id",
        "epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "transaction_start",
    )
    return write_results(arguments, Table(fields, rows), [*errors, *results.errors.values()])
