"""``trionet topics trim``, ``offsets`` and ``producers``: what is in the partitions of topics."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet._util._text import counted
from trionet._util._times import TIME_FORMS, time_text
from trionet.errors import ConfigError

from .arguments._parser import Subcommands, argument, flag, one_of, option, repeatable
from .arguments._values import INT64_MAX, allow_times, is_natural, parse_time
from .clients._admin import (
    ADMIN_ARGUMENTS,
    ALL_TOPICS,
    TOPICS,
    describe_selected,
    parse_and_print_time,
    run_with_admin,
    with_admin,
)
from .terminal._output import YES, Table, confirmed, write_results

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin
    from trionet.errors import TrionetError

COMMANDS: Final = Subcommands()

_END: Final = "end"
_PARTITIONS: Final = repeatable("-p, --partitions N,...", "only these partitions (default: all)")


@COMMANDS.command(
    "trim",
    "delete the records before an offset or a time",
    argument("topic", "TOPIC", "the topic; omit with --from-file", nargs="?"),
    one_of(
        option(
            "-o, --offset OFFSET",
            f"the first offset to keep; '{_END}' keeps nothing, @TIME keeps the records at or "
            f"after that time: {TIME_FORMS}",
        ),
        option(
            "-f, --from-file FILE",
            "a file with the first offsets to keep, as rows of topic, partition and offset in "
            "CSV or JSON; - is standard input",
        ),
        required=True,
    ),
    _PARTITIONS,
    YES,
    *ADMIN_ARGUMENTS,
    description="Delete the records of a topic before an offset or a time (Kafka: "
    "kafka-delete-records).",
)
def _run_trim(arguments: Namespace) -> int:
    from .arguments._topic_partitions import read_offsets

    if (arguments.topic is None) != (arguments.from_file is not None):
        raise ConfigError("give either TOPIC with --offset, or --from-file alone")
    if arguments.from_file is not None:
        if arguments.partitions:
            raise ConfigError("--partitions cannot be combined with --from-file, which names them")
        offsets = read_offsets(arguments.from_file)
        return run_with_admin(arguments, partial(_trim, arguments, offsets, []))
    numbers = _partitions(arguments)
    return run_with_admin(arguments, partial(_trim_topic, arguments, numbers, _parse(arguments)))


def _partitions(arguments: Namespace) -> list[int] | None:
    from .arguments._topic_partitions import parse_partitions

    return parse_partitions(arguments.partitions) if arguments.partitions else None


def _parse(arguments: Namespace) -> tuple[bool, int]:
    """Return whether --offset is a time, and the time or offset, which is -1 for the end."""
    text = arguments.offset
    if text == _END:
        return False, -1
    if text.startswith("@"):
        return True, parse_and_print_time(arguments, text[1:])
    if is_natural(text, INT64_MAX):
        return False, int(text)
    raise ConfigError(
        f"--offset {text}: expected a number from 0 to {INT64_MAX}, '{_END}', or @TIME"
    )


async def _trim_topic(
    arguments: Namespace, numbers: list[int] | None, first: tuple[bool, int], admin: Admin
) -> int:
    from trionet.client._topic_partition import TopicPartition

    from .clients._partition_offsets import offsets_at

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
    is_time, value = first
    if not is_time:
        return await _trim(arguments, dict.fromkeys(partitions, value), [], admin)
    offsets, errors = await offsets_at(admin, partitions, value)
    return await _trim(arguments, offsets, errors, admin)


async def _trim(
    arguments: Namespace,
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
    rows = [(*key, start) for key, start in results.items() if isinstance(start, int)]
    table = Table(("topic", "partition", "start_offset"), rows)
    return write_results(arguments, table, [*errors, *results.errors.values()])


# The words of Kafka's GetOffsetShell, which also accepts -1 to -5.
_SPECS: Final = (
    "latest",
    "earliest",
    "max-timestamp",
    "earliest-local",
    "latest-tiered",
    "earliest-pending-upload",
)


@COMMANDS.command(
    "offsets",
    "show the start and end offsets of partitions, or the offsets at a time",
    allow_times,
    *ALL_TOPICS,
    _PARTITIONS,
    option(
        "-t, --time TIME",
        f"show the first offset at or after this time: {TIME_FORMS}; or one of {', '.join(_SPECS)}",
    ),
    flag("--read-committed", "end at the last stable offset, before the first open transaction"),
    *ADMIN_ARGUMENTS,
    description="Show the start and end offsets of partitions and the number of offsets between "
    "them; or, with --time, the first offset at or after a time.",
)
def _run_offsets(arguments: Namespace) -> int:
    numbers = _partitions(arguments)
    spec = None if arguments.time is None else _spec(arguments.time)
    return run_with_admin(arguments, partial(_offsets, arguments, numbers, spec))


def _spec(text: str) -> int:
    from trionet.client.admin._partitions import OffsetSpec

    if text in _SPECS:
        return OffsetSpec[text.upper().replace("-", "_")]
    return parse_time(text, datetime.now(UTC))


async def _offsets(
    arguments: Namespace, numbers: list[int] | None, spec: int | None, admin: Admin
) -> int:
    from trionet.client._topic_partition import TopicPartition

    from .clients._partition_offsets import with_leader

    topics, errors = await describe_selected(arguments, admin)
    keys = [
        TopicPartition(topic.name, number)
        for topic in topics
        for number in (sorted(topic.partitions) if numbers is None else numbers)
    ]
    led, unavailable = with_leader(keys, {topic.name: topic for topic in topics})
    errors += unavailable
    if spec is None:
        table, failed = await _limits(arguments, admin, led)
    else:
        table, failed = await _at(arguments, admin, led, spec)
    return write_results(arguments, table, [*errors, *failed])


async def _limits(
    arguments: Namespace, admin: Admin, partitions: list[TopicPartition]
) -> tuple[Table, list[TrionetError]]:
    from .clients._partition_offsets import start_and_end

    found, errors = await start_and_end(admin, partitions, read_committed=arguments.read_committed)
    rows = [
        (*key, start, end, None if start is None or end is None else end - start)
        for key, (start, end) in found.items()
    ]
    return Table(("topic", "partition", "start_offset", "end_offset", "offsets"), rows), errors


async def _at(
    arguments: Namespace, admin: Admin, partitions: list[TopicPartition], spec: int
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


@COMMANDS.command(
    "producers",
    "show the producers of partitions",
    *TOPICS,
    *ADMIN_ARGUMENTS,
    description="Show the idempotent and transactional producers of partitions, and where their "
    "open transactions start.",
)
@with_admin
async def _producers(arguments: Namespace, admin: Admin) -> int:
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
