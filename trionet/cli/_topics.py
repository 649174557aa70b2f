"""``trionet topics``: list, describe, create, alter and delete topics.

:mod:`._topic_offsets` has the subcommands about the offsets and producers of partitions.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trionet._util._times import time_text
from trionet.errors import ApiError, ConfigError

from . import _topic_offsets
from .arguments._parser import Subcommands, argument, flag, one_of, option, repeatable
from .arguments._values import (
    CHANGES,
    DRY_RUN,
    INT16_MAX,
    INT32_MAX,
    Changes,
    bounded_int,
    change_labels,
    changes,
    is_natural,
    key_value,
)
from .clients._admin import (
    ADMIN_ARGUMENTS,
    ALL_TOPICS,
    TOPICS,
    describe_selected,
    run_with_admin,
    selected_names,
    with_admin,
)
from .terminal._output import YES, Table, confirmed, facts, print_message, write_results

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._cluster import Compaction
    from trionet.client.admin._configs import ConfigEntry
    from trionet.client.admin._topics import NewTopic, PartitionDescription, TopicDescription
    from trionet.errors import TrionetError

COMMANDS: Final = Subcommands()


@COMMANDS.command("list", "list topics", *ALL_TOPICS, *ADMIN_ARGUMENTS)
@with_admin
async def _list(arguments: Namespace, admin: Admin) -> int:
    topics, errors = await describe_selected(arguments, admin)
    rows = [
        (each.name, len(each.partitions), _replicas(each), each.id, each.is_internal)
        for each in topics
    ]
    table = Table(("name", "partitions", "replicas", "id", "internal"), rows)
    return write_results(arguments, table.first_columns(3), errors, table.documents(), as_csv=table)


def _replicas(topic: TopicDescription) -> int:
    return max((len(part.replicas) for part in topic.partitions.values()), default=0)


_FIELDS: Final = (
    "topic",
    "partition",
    "leader",
    "leader_epoch",
    "replicas",
    "in_sync",
    "offline",
    "start_offset",
    "end_offset",
)
_COMPACTION_FIELDS: Final = (
    "partition",
    "dirty_ratio",
    "cleaned",
    "seconds",
    "bytes_before",
    "bytes_after",
    "records_before",
    "records_after",
    "uncleanable",
)
_ALL: Final = "all"
_MIN_IN_SYNC: Final = "min.insync.replicas"


@COMMANDS.command(
    "describe",
    "show settings, partitions, leaders and offsets of topics, and how they are compacted",
    *ALL_TOPICS,
    flag("-c, --configs", "show all settings (default: only those set on the topic)"),
    option(
        "--only",
        "only partitions with replicas out of sync (under-replicated), without a leader "
        "(unavailable), with fewer in-sync replicas than min.insync.replicas (under-min-isr), or "
        "exactly as many (at-min-isr)",
        choices=(_ALL, "under-replicated", "unavailable", "under-min-isr", "at-min-isr"),
        default=_ALL,
    ),
    *ADMIN_ARGUMENTS,
)
@with_admin
async def _describe(arguments: Namespace, admin: Admin) -> int:
    from trionet.client._topic_partition import TopicPartition

    from .clients._partition_offsets import start_and_end

    topics, errors = await describe_selected(arguments, admin)
    configs = await _configs(admin, [each.name for each in topics], errors)
    selected = {
        topic.name: [
            part
            for part in topic.partitions.values()
            if _is_selected(arguments.only, part, configs.get(topic.name, {}))
        ]
        for topic in topics
    }
    if arguments.only != _ALL:
        topics = [topic for topic in topics if selected[topic.name]]
    # The request would be retried until it times out if a partition had no leader.
    led = [
        TopicPartition(topic.name, part.number)
        for topic in topics
        for part in selected[topic.name]
        if part.leader >= 0
    ]
    offsets, failed = await start_and_end(admin, led)
    compactions = await _compactions(admin, topics, selected, configs)
    tables: list[Table] = []
    documents, all_rows = [], []
    for topic in topics:
        entries = _shown_entries(arguments, configs.get(topic.name, {}))
        rows = [
            _row(topic.name, part, offsets.get(TopicPartition(topic.name, part.number)))
            for part in selected[topic.name]
        ]
        partitions = Table(_FIELDS, rows).without_first_column()
        compaction = _compaction_table(topic, selected[topic.name], compactions)
        tables += _tables(topic, entries, partitions)
        if compaction.rows:
            tables.append(compaction)
        documents.append(_document(topic, entries, partitions, compaction))
        all_rows += rows
    errors += failed
    return write_results(arguments, tables, errors, documents, as_csv=Table(_FIELDS, all_rows))


async def _configs(
    admin: Admin, names: list[str], errors: list[TrionetError]
) -> dict[str, dict[str, ConfigEntry]]:
    from trionet.client.admin._configs import ConfigResource, ConfigResourceType

    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    results = await admin.describe_configs(resources)
    errors += results.errors.values()
    return {each.name: entries for each, entries in results.items() if isinstance(entries, dict)}


async def _compactions(
    admin: Admin,
    topics: list[TopicDescription],
    selected: dict[str, list[PartitionDescription]],
    configs: dict[str, dict[str, ConfigEntry]],
) -> dict[TopicPartition, Compaction]:
    """Return how partitions of compacted topics are cleaned, which only trionet brokers report.

    Brokers that deny it, or that do not respond, are left out, like those of Kafka.
    """
    from trionet.client._topic_partition import TopicPartition

    leaders = {
        TopicPartition(topic.name, part.number): part.leader
        for topic in topics
        if "compact" in _value(configs.get(topic.name, {}), "cleanup.policy")
        for part in selected[topic.name]
        if part.leader >= 0
    }
    if not leaders:
        return {}
    found = await admin.describe_log_dirs(sorted(set(leaders.values())), list(leaders))
    return {
        partition: replica.compaction
        for broker, log_dirs in found.items()
        if isinstance(log_dirs, dict)
        for log_dir in log_dirs.values()
        if not isinstance(log_dir, Exception)
        for partition, replica in log_dir.replicas.items()
        if leaders.get(partition) == broker and replica.compaction is not None
    }


def _value(entries: dict[str, ConfigEntry], key: str) -> str:
    entry = entries.get(key)
    return "" if entry is None else entry.value or ""


def _compaction_table(
    topic: TopicDescription,
    parts: list[PartitionDescription],
    compactions: dict[TopicPartition, Compaction],
) -> Table:
    from trionet.client._topic_partition import TopicPartition

    rows: list[tuple[Any, ...]] = []
    for part in parts:
        found = compactions.get(TopicPartition(topic.name, part.number))
        if found is None:
            continue
        last: tuple[Any, ...] = (None,) * 6
        if found.cleaned_ms is not None:
            last = (
                time_text(found.cleaned_ms),
                found.cleaning_seconds,
                found.bytes_before,
                found.bytes_after,
                found.records_before,
                found.records_after,
            )
        rows.append((part.number, round(found.dirty_ratio, 3), *last, found.uncleanable))
    return Table(_COMPACTION_FIELDS, rows)


def _is_selected(only: str, part: PartitionDescription, entries: dict[str, ConfigEntry]) -> bool:
    in_sync = len(part.in_sync)
    entry = entries.get(_MIN_IN_SYNC)
    least = int(entry.value) if entry is not None and entry.value else 1
    return {
        _ALL: True,
        "under-replicated": in_sync < len(part.replicas),
        "unavailable": part.leader < 0,
        "under-min-isr": in_sync < least,
        "at-min-isr": in_sync == least,
    }[only]


def _shown_entries(arguments: Namespace, entries: dict[str, ConfigEntry]) -> list[ConfigEntry]:
    from trionet.client.admin._configs import ConfigSource

    return [
        entry
        for _, entry in sorted(entries.items())
        if arguments.configs or entry.source is ConfigSource.DYNAMIC_TOPIC
    ]


def _row(
    topic: str, part: PartitionDescription, limits: tuple[int | None, int | None] | None
) -> tuple[Any, ...]:
    leader = _known(part.leader)
    epoch = _known(part.leader_epoch)
    replicas = (part.replicas, part.in_sync, part.offline)
    return (topic, part.number, leader, epoch, *replicas, *(limits or (None, None)))


def _known(number: int) -> int | None:
    """Return the number, or None if the broker did not report it."""
    return None if number < 0 else number


def _tables(topic: TopicDescription, entries: list[ConfigEntry], partitions: Table) -> list[Table]:
    summary: dict[str, Any] = {
        "topic": topic.name,
        "id": topic.id,
        "partitions": len(topic.partitions),
        "replicas": _replicas(topic),
        "internal": topic.is_internal,
    }
    rows = [
        (
            entry.name,
            "(hidden)" if entry.is_sensitive and entry.value is None else entry.value,
            entry.source.name,
        )
        for entry in entries
    ]
    configs = [Table(("key", "value", "source"), rows)] if rows else []
    return [facts(summary), *configs, partitions]


def _document(
    topic: TopicDescription, entries: list[ConfigEntry], partitions: Table, compaction: Table
) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": topic.id,
        "internal": topic.is_internal,
        "configs": {
            entry.name: {"value": entry.value, "source": entry.source.name} for entry in entries
        },
        "partitions": partitions.documents(),
        "compaction": compaction.documents(),
    }


@COMMANDS.command(
    "create",
    "create topics",
    argument("topics", "TOPIC", "topic names", nargs="+"),
    option(
        "-p, --partitions N",
        "partitions of each topic (default: the broker's num.partitions)",
        type=bounded_int(1, INT32_MAX, default=-1),
        default=-1,
    ),
    option(
        "-r, --replicas, --replication-factor N",
        "replicas of each partition (default: the broker's default.replication.factor)",
        type=bounded_int(1, INT16_MAX, default=-1),
        default=-1,
    ),
    repeatable(
        "-s, --set, -c, --topic-config KEY=VALUE",
        "a topic setting, such as retention.ms=86400000; may be repeated",
    ),
    option(
        "--replica-assignment ID:ID,...",
        "the replicas of each partition, instead of -p and -r: 1:2,2:3 creates two "
        "partitions, the first with its preferred leader on broker 1",
    ),
    flag("--if-not-exists", "do not fail if a topic already exists"),
    flag("-d, --dry-run", "validate the request without creating topics"),
    *ADMIN_ARGUMENTS,
)
def _run_create(arguments: Namespace) -> int:
    from trionet.client.admin._topics import NewTopic

    assignments = None
    if arguments.replica_assignment is not None:
        if (arguments.partitions, arguments.replicas) != (-1, -1):
            raise ConfigError(
                "--replica-assignment cannot be combined with --partitions or --replicas"
            )
        assignments = _assignments(arguments.replica_assignment)
    configs = dict(key_value(text, "--set") for text in arguments.set)
    topics = [
        NewTopic(name, arguments.partitions, arguments.replicas, configs, assignments)
        for name in dict.fromkeys(arguments.topics)
    ]
    return run_with_admin(arguments, partial(_create, arguments, topics))


def _assignments(text: str) -> dict[int, list[int]]:
    """Parse replica assignments in Kafka's form.

    Commas separate the partitions, and colons separate the brokers of a partition.
    """
    found = {}
    for number, brokers in enumerate(text.split(",")):
        words = brokers.strip().split(":")
        if not all(is_natural(word, INT32_MAX) for word in words):
            raise ConfigError(
                f"--replica-assignment {text}: invalid replicas {brokers!r}: expected broker ids "
                "separated by colons, and commas between partitions, such as 1:2,2:3"
            )
        found[number] = [int(word) for word in words]
    return found


async def _create(arguments: Namespace, topics: list[NewTopic], admin: Admin) -> int:
    from trionet.protocol.error_codes import TOPIC_ALREADY_EXISTS

    results = await admin.create_topics(topics, validate_only=arguments.dry_run)
    errors = results.errors
    for name in errors:
        del results[name]
    if arguments.if_not_exists:
        errors = _without(errors, TOPIC_ALREADY_EXISTS, "already exists", arguments)
    rows = [
        (each.name, _known(each.partitions), _known(each.replication_factor), each.id)
        for each in results.checked().values()
    ]
    table = Table(("name", "partitions", "replicas", "id"), rows)
    return write_results(
        arguments, table.first_columns(3), errors.values(), table.documents(), as_csv=table
    )


def _without(
    errors: dict[str, TrionetError], code: int, meaning: str, arguments: Namespace
) -> dict[str, TrionetError]:
    """Return the errors except those with the code, which become messages."""
    left = {}
    for name, error in errors.items():
        if isinstance(error, ApiError) and error.error_code == code:
            print_message(arguments, f"topic {name} {meaning}")
        else:
            left[name] = error
    return left


@COMMANDS.command(
    "alter",
    "add partitions to topics or change their settings",
    *TOPICS,
    one_of(
        option(
            "-p, --partitions TOTAL",
            "new number of partitions of each topic",
            type=bounded_int(1, INT32_MAX),
        ),
        option(
            "-n, --add-partitions N",
            "number of partitions to add to each topic",
            type=bounded_int(1, INT32_MAX),
        ),
    ),
    *CHANGES,
    DRY_RUN,
    *ADMIN_ARGUMENTS,
    description="Add partitions to topics or change their settings. All changes are validated "
    "before the first is applied. Adding partitions may change the partition of records with a "
    "key.",
)
def _run_alter(arguments: Namespace) -> int:
    requested = changes(arguments)
    if not requested and arguments.partitions is None and arguments.add_partitions is None:
        raise ConfigError(
            "nothing to change: use --partitions, --add-partitions, --set, --delete, --append or"
            " --subtract"
        )
    return run_with_admin(arguments, partial(_alter, arguments, requested))


async def _alter(arguments: Namespace, requested: Changes, admin: Admin) -> int:
    names = await selected_names(arguments, admin)
    totals: dict[str, int] = {}
    failed: dict[str, TrionetError] = {}
    if arguments.add_partitions is not None:
        totals, failed = await _grown(admin, names, arguments.add_partitions)
    elif arguments.partitions is not None:
        totals = dict.fromkeys(names, arguments.partitions)
    for validate_only in (True,) if arguments.dry_run else (True, False):
        names = [name for name in names if name not in failed]
        failed |= await _apply(admin, names, totals, requested, validate_only=validate_only)
    changed = change_labels(requested)
    rows = [
        (name, [*([f"partitions={totals[name]}"] if name in totals else []), *changed])
        for name in names
        if name not in failed
    ]
    return write_results(arguments, Table(("name", "changed"), rows), failed.values())


async def _grown(
    admin: Admin, names: list[str], more: int
) -> tuple[dict[str, int], dict[str, TrionetError]]:
    """Return each topic's new number of partitions, and the errors of failed topics."""
    described = await admin.describe_topics(names)
    failed = described.errors
    for name in failed:
        del described[name]
    found = described.checked()
    totals = {name: len(topic.partitions) + more for name, topic in found.items()}
    if (most := max(totals.values(), default=0)) > INT32_MAX:
        raise ConfigError(
            f"--add-partitions {more}: {most} partitions exceed the limit of {INT32_MAX} per topic"
        )
    return totals, failed


async def _apply(
    admin: Admin,
    names: list[str],
    totals: dict[str, int],
    requested: Changes,
    *,
    validate_only: bool,
) -> dict[str, TrionetError]:
    """Apply or validate the changes, and return the errors, keyed by topic name."""
    import trio

    from trionet.client.admin._configs import ConfigResource, ConfigResourceType

    await trio.lowlevel.checkpoint()
    failed: dict[str, TrionetError] = {}
    if requested and names:
        resources = {ConfigResource(ConfigResourceType.TOPIC, name): requested for name in names}
        altered = await admin.incremental_alter_configs(resources, validate_only=validate_only)
        failed |= {resource.name: error for resource, error in altered.errors.items()}
    larger = {name: total for name, total in totals.items() if name in names}
    if larger:
        grown = await admin.create_partitions(larger, validate_only=validate_only)
        failed |= grown.errors
    return failed


@COMMANDS.command(
    "delete",
    "delete topics and all their records",
    *TOPICS,
    flag("--if-exists", "do not fail if a topic does not exist"),
    YES,
    *ADMIN_ARGUMENTS,
)
@with_admin
async def _delete(arguments: Namespace, admin: Admin) -> int:
    from trionet.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION

    names = await selected_names(arguments, admin)
    if not names:
        print_message(arguments, "no topic matches")
        return 0 if arguments.if_exists else 1
    what = f"topic {names[0]}" if len(names) == 1 else f"{len(names)} topics ({', '.join(names)})"
    if not confirmed(arguments, f"delete {what} and all records"):
        return 1
    results = await admin.delete_topics(names)
    errors = results.errors
    if arguments.if_exists:
        errors = _without(errors, UNKNOWN_TOPIC_OR_PARTITION, "does not exist", arguments)
    rows = [(name,) for name in names if results[name] is None]
    return write_results(arguments, Table(("deleted",), rows), errors.values())


COMMANDS.extend(_topic_offsets.COMMANDS)
