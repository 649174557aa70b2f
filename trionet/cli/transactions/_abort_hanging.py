"""``trionet transactions abort-hanging``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..arguments._numbers import INT64_MAX, whole
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirming_argument, confirmed
from ..terminal._output import Table, add_format_arguments, tell, write

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "End a transaction that its coordinator does not know any more, and that keeps readers of "
        "what is committed from going on. `trionet topics producers` shows where one begins."
    )
    parser.add_argument("topic", metavar="TOPIC:N", help="the partition in which it hangs")
    parser.add_argument(
        "--start-offset",
        type=whole(0, INT64_MAX),
        required=True,
        metavar="OFFSET",
        help="where it begins",
    )
    add_confirming_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 ended, 1 there is none."""
    from trionet.client._topic_partition import TopicPartition

    from ..arguments._topic_partitions import parse_topic

    topic, numbers = parse_topic(arguments.topic)
    if numbers is None or len(numbers) != 1:
        raise ConfigError(f"{arguments.topic!r} is not one partition; allowed: TOPIC:PARTITION")
    return run_with_admin(arguments, partial(_abort, arguments, TopicPartition(topic, numbers[0])))


async def _abort(arguments: argparse.Namespace, key: TopicPartition, admin: Admin) -> int:
    [producers] = (await admin.describe_producers([key])).checked().values()
    found = [each for each in producers if each.transaction_start_offset == arguments.start_offset]
    if not found:
        tell(arguments, f"no transaction of {key} begins at {arguments.start_offset}")
        return 1
    [producer] = found
    if not confirmed(arguments, f"end the transaction of producer {producer.producer_id} in {key}"):
        return 1
    epoch = producer.coordinator_epoch
    await admin.abort_transaction(
        key,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=-1 if epoch is None else epoch,
    )
    row = (*key, producer.producer_id, producer.producer_epoch)
    write(arguments.format, Table(("topic", "partition", "producer_id", "epoch"), [row]))
    return 0
