"""``trionet transactions``: list, describe and abort transactions."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from .arguments._name_patterns import split_names
from .arguments._numbers import INT64_MAX, bounded_int
from .arguments._parser import Subcommands, Verb, run
from .arguments._times import time_text
from .clients._admin import run_with_admin
from .clients._connection import add_connection_arguments
from .terminal._confirmation import add_confirmation_argument, confirmed
from .terminal._output import Table, add_format_arguments, print_message, write, write_results

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin


def _add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument(
        "-s",
        "--states",
        action="append",
        default=[],
        metavar="STATE,...",
        help="only transactions in these states, such as Ongoing",
    )
    parser.add_argument(
        "--producer-id",
        type=bounded_int(0, INT64_MAX),
        action="append",
        default=[],
        metavar="ID",
        help="only transactions of this producer; may be repeated",
    )
    parser.add_argument(
        "--longer-than-ms",
        type=bounded_int(0, INT64_MAX),
        metavar="N",
        help="only transactions open for longer than this (Kafka 3.8)",
    )
    parser.add_argument(
        "--pattern", metavar="REGEX", help="only ids that match this as a whole (RE2; Kafka 4.1)"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_list(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status 0."""
    return run_with_admin(arguments, partial(_list, arguments))


async def _list(arguments: argparse.Namespace, admin: Admin) -> int:
    found = await admin.list_transactions(
        states=split_names(arguments.states),
        producer_ids=arguments.producer_id,
        duration_ms=arguments.longer_than_ms,
        pattern=arguments.pattern,
    )
    rows = [(id, each.producer_id, each.state) for id, each in sorted(found.items())]
    write(arguments.format, Table(("transactional_id", "producer_id", "state"), rows))
    return 0


def _add_describe_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument("ids", metavar="ID", nargs="+", help="a transactional.id")
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_describe(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were shown, 1 if some failed."""
    return run_with_admin(arguments, partial(_describe, arguments))


async def _describe(arguments: argparse.Namespace, admin: Admin) -> int:
    from trionet.client.admin._transactions import TransactionDescription

    results = await admin.describe_transactions(list(dict.fromkeys(arguments.ids)))
    rows = [
        (
            id,
            each.producer_id,
            each.producer_epoch,
            each.state,
            str(each.coordinator),
            each.timeout_ms,
            None if each.started_ms is None else time_text(each.started_ms),
            sorted(map(str, each.partitions)),
        )
        for id, each in results.items()
        if isinstance(each, TransactionDescription)
    ]
    fields = (
        "transactional_id",
        "producer_id",
        "epoch",
        "state",
        "coordinator",
        "timeout_ms",
        "started",
        "partitions",
    )
    return write_results(arguments, Table(fields, rows), results.errors.values())


def _add_abort_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Abort the open transactions of transactional ids and fence their producers."
    )
    parser.add_argument("ids", metavar="ID", nargs="+", help="a transactional.id")
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_abort(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were aborted, 1 if some were not."""
    ids = list(dict.fromkeys(arguments.ids))
    if not confirmed(
        arguments, f"abort the open transactions of {', '.join(ids)} and fence their producers"
    ):
        return 1
    return run_with_admin(arguments, partial(_abort, arguments, ids))


async def _abort(arguments: argparse.Namespace, ids: list[str], admin: Admin) -> int:
    from trionet.client.admin._transactions import FencedProducer

    results = await admin.fence_producers(ids)
    rows = [
        (id, each.producer_id, each.producer_epoch)
        for id, each in results.items()
        if isinstance(each, FencedProducer)
    ]
    return write_results(
        arguments,
        Table(("transactional_id", "producer_id", "epoch"), rows),
        results.errors.values(),
    )


def _add_abort_hanging_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Abort a transaction that its coordinator no longer knows and that blocks read_committed "
        "consumers. `trionet topics producers` shows where it starts."
    )
    parser.add_argument("topic", metavar="TOPIC:N", help="the partition of the transaction")
    parser.add_argument(
        "--start-offset",
        type=bounded_int(0, INT64_MAX),
        required=True,
        metavar="OFFSET",
        help="offset of the transaction's first record",
    )
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_abort_hanging(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if aborted, 1 if not found or declined."""
    from trionet.client._topic_partition import TopicPartition

    from .arguments._topic_partitions import parse_topic

    topic, numbers = parse_topic(arguments.topic)
    if numbers is None or len(numbers) != 1:
        raise ConfigError(f"invalid partition {arguments.topic!r}: expected TOPIC:PARTITION")
    return run_with_admin(
        arguments, partial(_abort_hanging, arguments, TopicPartition(topic, numbers[0]))
    )


async def _abort_hanging(arguments: argparse.Namespace, key: TopicPartition, admin: Admin) -> int:
    [producers] = (await admin.describe_producers([key])).checked().values()
    found = [each for each in producers if each.transaction_start_offset == arguments.start_offset]
    if not found:
        print_message(
            arguments, f"no open transaction in {key} starts at offset {arguments.start_offset}"
        )
        return 1
    [producer] = found
    if not confirmed(
        arguments, f"abort the transaction of producer {producer.producer_id} in {key}"
    ):
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


COMMANDS: Final = {
    "list": Verb("list transactional ids", _add_list_arguments, _run_list),
    "describe": Verb(
        "show states and partitions of transactional ids", _add_describe_arguments, _run_describe
    ),
    "abort": Verb(
        "abort the open transaction of a transactional id", _add_abort_arguments, _run_abort
    ),
    "abort-hanging": Verb(
        "abort a hanging transaction in a partition",
        _add_abort_hanging_arguments,
        _run_abort_hanging,
    ),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
