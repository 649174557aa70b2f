"""``trionet topics describe``: show settings, partitions, leaders and offsets of topics."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..arguments._name_patterns import add_regex_argument
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..clients._topic_selection import describe_selected
from ..terminal._output import Table, add_format_arguments, facts, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._configs import ConfigEntry
    from trionet.client.admin._topics import PartitionDescription, TopicDescription
    from trionet.errors import TrionetError

    from ..clients._partition_offsets import Limits

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
_ALL: Final = "all"
ONLY: Final = (_ALL, "under-replicated", "unavailable", "under-min-isr", "at-min-isr")
_MIN_IN_SYNC: Final = "min.insync.replicas"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
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
        "-c",
        "--configs",
        action="store_true",
        help="show all settings (default: only those set on the topic)",
    )
    parser.add_argument(
        "--only",
        choices=ONLY,
        default=_ALL,
        help="only partitions with replicas out of sync (under-replicated), without a leader "
        "(unavailable), with fewer in-sync replicas than min.insync.replicas (under-min-isr), or "
        "exactly as many (at-min-isr)",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were shown, 1 if some failed."""
    return run_with_admin(arguments, partial(_describe, arguments))


class _Topic(NamedTuple):
    """A topic with its settings and the rows of its partitions."""

    about: TopicDescription
    entries: dict[str, ConfigEntry]
    rows: list[tuple[Any, ...]]


async def _describe(arguments: argparse.Namespace, admin: Admin) -> int:
    described, errors = await describe_selected(arguments, admin)
    configs = await _configs(admin, [each.name for each in described], errors)
    selected = [
        (
            topic,
            [part for part in topic.partitions.values() if _is_selected(arguments, part, entries)],
        )
        for topic in described
        for entries in (configs.get(topic.name, {}),)
    ]
    if arguments.only != _ALL:
        selected = [(topic, parts) for topic, parts in selected if parts]
    offsets = await _offsets(admin, selected, errors)
    topics = [
        _Topic(topic, configs.get(topic.name, {}), [_row(topic, part, offsets) for part in parts])
        for topic, parts in selected
    ]
    tables = [table for topic in topics for table in _tables(arguments, topic)]
    rows = [row for topic in topics for row in topic.rows]
    documents = [_document(arguments, topic) for topic in topics]
    return write_results(arguments, tables, errors, documents, as_csv=Table(_FIELDS, rows))


async def _configs(
    admin: Admin, names: list[str], errors: list[TrionetError]
) -> dict[str, dict[str, ConfigEntry]]:
    from trionet.client.admin._configs import ConfigResource, ConfigResourceType

    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    results = await admin.describe_configs(resources)
    errors += results.errors.values()
    return {each.name: entries for each, entries in results.items() if isinstance(entries, dict)}


async def _offsets(
    admin: Admin,
    selected: Iterable[tuple[TopicDescription, list[PartitionDescription]]],
    errors: list[TrionetError],
) -> Limits:
    """Return the start and end offsets of the partitions that have a leader."""
    from trionet.client._topic_partition import TopicPartition

    from ..clients._partition_offsets import start_and_end

    led = [
        TopicPartition(topic.name, part.number)
        for topic, parts in selected
        for part in parts
        if part.leader >= 0
    ]
    found, failed = await start_and_end(admin, led)
    errors += failed
    return found


def _is_selected(
    arguments: argparse.Namespace, part: PartitionDescription, entries: dict[str, ConfigEntry]
) -> bool:
    in_sync = len(part.in_sync)
    entry = entries.get(_MIN_IN_SYNC)
    least = int(entry.value) if entry is not None and entry.value else 1
    return {
        _ALL: True,
        "under-replicated": in_sync < len(part.replicas),
        "unavailable": part.leader < 0,
        "under-min-isr": in_sync < least,
        "at-min-isr": in_sync == least,
    }[str(arguments.only)]


def _row(
    topic: TopicDescription,
    part: PartitionDescription,
    offsets: Limits,
) -> tuple[Any, ...]:
    from trionet.client._topic_partition import TopicPartition

    return (
        topic.name,
        part.number,
        part.leader if part.leader >= 0 else None,
        part.leader_epoch if part.leader_epoch >= 0 else None,
        part.replicas,
        part.in_sync,
        part.offline,
        *offsets.get(TopicPartition(topic.name, part.number), (None, None)),
    )


def _shown_entries(arguments: argparse.Namespace, topic: _Topic) -> list[ConfigEntry]:
    from trionet.client.admin._configs import ConfigSource

    return [
        entry
        for _, entry in sorted(topic.entries.items())
        if arguments.configs or entry.source is ConfigSource.DYNAMIC_TOPIC
    ]


def _tables(arguments: argparse.Namespace, topic: _Topic) -> list[Table]:
    about = topic.about
    summary = facts(
        {
            "topic": about.name,
            "id": about.id,
            "partitions": len(about.partitions),
            "replicas": max((len(p.replicas) for p in about.partitions.values()), default=0),
            "internal": about.is_internal,
        }
    )
    entries = _shown_entries(arguments, topic)
    rows = [(entry.name, _value(entry), entry.source.name) for entry in entries]
    configs = [Table(("key", "value", "source"), rows)] if rows else []
    partitions = Table(_FIELDS[1:], [row[1:] for row in topic.rows])
    return [summary, *configs, partitions]


def _document(arguments: argparse.Namespace, topic: _Topic) -> dict[str, Any]:
    about = topic.about
    return {
        "name": about.name,
        "id": about.id,
        "internal": about.is_internal,
        "configs": {
            entry.name: {"value": entry.value, "source": entry.source.name}
            for entry in _shown_entries(arguments, topic)
        },
        "partitions": [dict(zip(_FIELDS[1:], row[1:], strict=True)) for row in topic.rows],
    }


def _value(entry: ConfigEntry) -> str | None:
    return "(hidden)" if entry.is_sensitive and entry.value is None else entry.value
