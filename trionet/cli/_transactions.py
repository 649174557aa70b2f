"""``trionet transactions``: list, describe, find and abort transactions."""

from __future__ import annotations

import time
from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet._util._times import time_text
from trionet.errors import ApiError, ConfigError, UnsupportedVersionError

from .arguments._parser import Subcommands, argument, option, repeatable
from .arguments._values import INT32_MAX, INT64_MAX, bounded_int, known_names
from .clients._admin import ADMIN_ARGUMENTS, describe_selected, run_with_admin, with_admin
from .terminal._output import YES, Table, confirmed, print_message, write, write_results

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin

COMMANDS: Final = Subcommands()

_IDS: Final = argument("ids", "ID", "a transactional.id", nargs="+")
# Kafka: TransactionState.
_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


@COMMANDS.command(
    "list",
    "list transactional ids",
    repeatable(
        "-s, --states STATE,...", f"only transactions in these states: {', '.join(_STATES)}"
    ),
    repeatable(
        "--producer-id ID",
        "only transactions of this producer; may be repeated",
        type=bounded_int(0, INT64_MAX),
    ),
    option(
        "--longer-than-ms N",
        "only transactions open for longer than this (Kafka 3.8)",
        type=bounded_int(0, INT64_MAX),
    ),
    option("--pattern REGEX", "only ids that match this as a whole (RE2; Kafka 4.1)"),
    *ADMIN_ARGUMENTS,
)
def _run_list(arguments: Namespace) -> int:
    states = known_names("state", arguments.states, _STATES)
    return run_with_admin(arguments, partial(_list, arguments, states))


async def _list(arguments: Namespace, states: list[str], admin: Admin) -> int:
    from trionet.protocol.error_codes import INVALID_REGULAR_EXPRESSION

    try:
        found = await admin.list_transactions(
            states=states,
            producer_ids=arguments.producer_id,
            duration_ms=arguments.longer_than_ms,
            pattern=arguments.pattern,
        )
    except ApiError as error:
        if error.error_code != INVALID_REGULAR_EXPRESSION:
            raise
        print_message(
            arguments,
            f"the broker does not support the pattern {arguments.pattern!r}: expected a regular"
            " expression of RE2",
        )
        return 1
    rows = [(id, each.producer_id, each.state) for id, each in sorted(found.items())]
    write(arguments.format, Table(("transactional_id", "producer_id", "state"), rows))
    return 0


@COMMANDS.command(
    "describe", "show states and partitions of transactional ids", _IDS, *ADMIN_ARGUMENTS
)
@with_admin
async def _describe(arguments: Namespace, admin: Admin) -> int:
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


@COMMANDS.command(
    "abort",
    "abort the open transaction of a transactional id",
    _IDS,
    YES,
    *ADMIN_ARGUMENTS,
    description="Abort the open transactions of transactional ids and fence their producers.",
)
def _run_abort(arguments: Namespace) -> int:
    ids = list(dict.fromkeys(arguments.ids))
    if not confirmed(
        arguments, f"abort the open transactions of {', '.join(ids)} and fence their producers"
    ):
        return 1
    return run_with_admin(arguments, partial(_abort, arguments, ids))


async def _abort(arguments: Namespace, ids: list[str], admin: Admin) -> int:
    from trionet.client.admin._transactions import FencedProducer

    unknown = await _unknown(ids, admin)
    results = await admin.fence_producers([id for id in ids if id not in unknown])
    rows = [
        (id, each.producer_id, each.producer_epoch)
        for id, each in results.items()
        if isinstance(each, FencedProducer)
    ]
    table = Table(("transactional_id", "producer_id", "epoch"), rows)
    return write_results(arguments, table, [*unknown.values(), *results.errors.values()])


async def _unknown(ids: list[str], admin: Admin) -> dict[str, Exception]:
    """Return the errors of ids that no coordinator has: fencing their producers creates them."""
    from trionet.protocol.error_codes import TRANSACTIONAL_ID_NOT_FOUND

    try:
        errors = (await admin.describe_transactions(ids)).errors
    except UnsupportedVersionError:
        return {}  # older than Kafka 3.0
    return {
        id: error
        for id, error in errors.items()
        if isinstance(error, ApiError) and error.error_code == TRANSACTIONAL_ID_NOT_FOUND
    }


@COMMANDS.command(
    "find-hanging",
    "find transactions that no coordinator will end",
    option("--broker-id ID", "only partitions of this broker", type=bounded_int(0, INT32_MAX)),
    option("--topic TOPIC", "only this topic (default: all topics)"),
    option(
        "--partition N", "only this partition; requires --topic", type=bounded_int(0, INT32_MAX)
    ),
    option(
        "--max-transaction-timeout MINUTES",
        "only transactions whose producer has written nothing for this time, which should be the "
        "brokers' transaction.max.timeout.ms (default: 15)",
        type=bounded_int(0, INT32_MAX),
        default=15,
    ),
    *ADMIN_ARGUMENTS,
    description="Find open transactions that belong to no transactional id and block "
    "read_committed consumers. End them with `trionet transactions abort-hanging`.",
)
def _run_find_hanging(arguments: Namespace) -> int:
    if arguments.partition is not None and arguments.topic is None:
        raise ConfigError("--partition requires --topic")
    return run_with_admin(arguments, partial(_find_hanging, arguments))


async def _find_hanging(arguments: Namespace, admin: Admin) -> int:
    from trionet.client._topic_partition import TopicPartition

    from .clients._partition_offsets import with_leader

    arguments.topics = [] if arguments.topic is None else [arguments.topic]
    topics, errors = await describe_selected(arguments, admin)
    described = {topic.name: topic for topic in topics}
    broker_id, number = arguments.broker_id, arguments.partition
    keys = [
        TopicPartition(topic.name, each)
        for topic in topics
        for each in (sorted(topic.partitions) if number is None else [number])
    ]
    led, unavailable = with_leader(keys, described)
    if broker_id is not None:
        led = [
            key
            for key in led
            if broker_id in described[key.topic].partitions[key.partition].replicas
        ]
    now_ms = time.time_ns() // 1_000_000
    results = await admin.find_hanging_transactions(
        led,
        written_before_ms=now_ms - arguments.max_transaction_timeout * 60_000,
        broker_id=broker_id,
    )
    rows = [
        (
            *key,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.transaction_start_offset,
            time_text(each.last_timestamp),
            max(0, now_ms - each.last_timestamp) // 60_000,
        )
        for key, producers in sorted(results.items())
        if isinstance(producers, list)
        for each in producers
    ]
    fields = (
        "topic",
        "partition",
        "producer_id",
        "epoch",
        "coordinator_epoch",
        "transaction_start",
        "last_timestamp",
        "minutes",
    )
    errors += [*unavailable, *results.errors.values()]
    return write_results(arguments, Table(fields, rows), errors)


@COMMANDS.command(
    "abort-hanging",
    "abort a hanging transaction in a partition",
    argument("topic", "TOPIC:N", "the partition of the transaction"),
    option(
        "--start-offset OFFSET",
        "offset of the transaction's first record",
        type=bounded_int(0, INT64_MAX),
        required=True,
    ),
    YES,
    *ADMIN_ARGUMENTS,
    description="Abort a transaction that its coordinator no longer knows and that blocks "
    "read_committed consumers. `trionet transactions find-hanging` shows where it starts.",
)
def _run_abort_hanging(arguments: Namespace) -> int:
    from trionet.client._topic_partition import TopicPartition

    from .arguments._topic_partitions import parse_topic

    topic, numbers = parse_topic(arguments.topic)
    if numbers is None or len(numbers) != 1:
        raise ConfigError(f"invalid partition {arguments.topic!r}: expected TOPIC:PARTITION")
    return run_with_admin(
        arguments, partial(_abort_hanging, arguments, TopicPartition(topic, numbers[0]))
    )


async def _abort_hanging(arguments: Namespace, key: TopicPartition, admin: Admin) -> int:
    [producers] = (await admin.describe_producers([key])).checked().values()
    found = [each for each in producers if each.transaction_start_offset == arguments.start_offset]
    if not found:
        print_message(
            arguments, f"no open transaction in {key} starts at offset {arguments.start_offset}"
        )
        return 1
    [producer] = found
    [hanging] = (await admin.find_hanging_transactions([key])).checked().values()
    if producer.producer_id not in {each.producer_id for each in hanging}:
        # Its other partitions could be committed.
        print_message(
            arguments,
            f"the transaction in {key} does not hang: it belongs to a transactional id, which"
            f" `trionet transactions list --producer-id {producer.producer_id}` shows; abort all of"
            " it with `trionet transactions abort`",
        )
        return 1
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
