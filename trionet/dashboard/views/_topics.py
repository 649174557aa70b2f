"""Topics and their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from ..._util._text import counted
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import UNREAD, Column, Table, alarm_if, table_of, trend_column
from ..ui._view import Action, Field, Link, View
from ._cluster import ConfigsView
from ._tail import TailView, produce_to

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import PartitionRow, TopicRow
    from ..sources._source import Source

TOPIC_COLUMNS: Final[tuple[Column[TopicRow], ...]] = (
    # A name is worth more than a trend that is a little longer.
    Column("name", "TOPIC", 20, grow=5),
    Column("partitions", "PARTS", 6, text=units.count, right=True),
    Column("replicas", "REPL", 4, right=True, priority=5),
    *(
        Column(
            name,
            title,
            len(title),
            text=units.count,
            right=True,
            priority=3,
            style=alarm_if(name),
            is_optional=True,
        )
        for name, title in (
            ("under_replicated", "UNSYNCED"),
            ("leaderless", "NO LEADER"),
            ("uncleanable", "UNCLEANED"),
        )
    ),
    Column("dirty_ratio", "DIRTY", 6, text=units.percent, right=True, priority=4, is_optional=True),
    Column("records", "RECORDS", 9, text=units.count, right=True, priority=1),
    Column("rate", "REC/S", 8, text=units.rate, right=True),
    Column("bytes", "SIZE", 9, text=units.size, right=True, priority=2),
    trend_column("rate", 10, priority=4, grow=1),
    Column("is_internal", "INTERNAL", 0, text=units.yes),
    Column("id", "ID", 0),
)


def _count_error(answer: str) -> str | None:
    if answer.isdecimal() and int(answer) >= 1:
        return None
    return "must be an integer of at least 1"


async def _create(source: Source, _row: object, answers: Sequence[str]) -> str:
    name, *counts = answers
    partitions, replicas = (int(count) if count else None for count in counts)
    return await source.actions.create_topic(name, partitions, replicas)


CREATE: Final = Action(
    "C",
    "create-topic",
    "create a topic",
    _create,
    fields=(
        Field("topic"),
        Field("partitions", check=_count_error, is_optional=True),
        Field("replicas", check=_count_error, is_optional=True),
    ),
    question=lambda _, answers: f"Create the topic {answers[0]}?",
    needs_row=False,
)
DELETE: Final = Action(
    "D",
    "delete-topic",
    "delete a topic",
    lambda source, row, _: source.actions.delete_topic(row.name),
    question=lambda row, _: f"Delete the topic {row.name} and all its records?",
)
GROW: Final = Action(
    "N",
    "add-partitions",
    "add partitions",
    lambda source, row, answers: source.actions.add_partitions(row.name, int(answers[0])),
    fields=(
        Field(
            "partitions",
            default=lambda row: str(row.partitions + 1),
            check=_count_error,
        ),
    ),
    question=lambda row, answers: f"Increase {row.name} to {answers[0]} partitions?",
)


class TopicsView(View):
    """A table of all topics."""

    name = "topics"
    key = "5"
    title = "Topics"
    help = (
        "All topics of the cluster. Only trionet brokers report UNCLEANED and DIRTY, of compacted "
        "topics. Enter shows the partitions, f the records as they arrive, and c the configs."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "PARTS": "number of partitions",
        "REPL": "largest number of replicas of a partition, its replication factor",
        "UNSYNCED": "under-replicated partitions, which have a replica that is not in sync",
        "NO LEADER": "partitions without a leader, which cannot be written or read",
        "UNCLEANED": "partitions that are not cleaned any more after a failure",
        "DIRTY": "the largest share of a partition that was not cleaned yet",
        "RECORDS": "offsets from the start to the end of all partitions, with compacted records "
        "and transaction markers",
        "REC/S": "how fast the end offsets grow, per second",
        "SIZE": "size at the leaders",
        "TREND": "REC/S of the last minutes",
    }
    empty = "No topics yet. C creates one, as does trionet topics create TOPIC."
    opens = "partitions"
    section: ClassVar[str | None] = "topics"
    actions: Sequence[Action] = (CREATE, DELETE, GROW, produce_to(lambda row: row.name))
    links: Sequence[Link] = (
        Link("f", "follow", "records", lambda row: TailView(row.name, None), needs_row=True),
        Link(
            "c", "settings", "configs", lambda row: ConfigsView("topic", row.name), needs_row=True
        ),
    )

    def table(self, model: Model) -> Table[TopicRow]:
        return table_of(model.topics, TOPIC_COLUMNS, "name", sort="name")

    def opened(self, row: TopicRow) -> View:
        return TopicView(row.name)


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


PARTITION_COLUMNS: Final[tuple[Column[PartitionRow], ...]] = (
    Column("number", "PART", 6, right=True),
    Column("leader", "LEADER", 6, right=True),
    Column(
        "replicas",
        "REPLICAS",
        10,
        lambda row: _ids(row.replicas),
        priority=3,
        grow=1,
        is_searched=False,
    ),
    Column(
        "in_sync",
        "IN SYNC",
        10,
        lambda row: _ids(row.in_sync),
        priority=2,
        grow=1,
        is_searched=False,
        style=lambda row: palette.ALARM if len(row.in_sync) < len(row.replicas) else None,
    ),
    Column("start_offset", "FIRST", 12, text="{:,}".format, right=True),
    Column("end_offset", "END", 12, text="{:,}".format, right=True),
    Column("rate", "REC/S", 8, text=units.rate, right=True),
    Column("bytes", "SIZE", 9, text=units.size, right=True, priority=1),
    Column("leader_epoch", "EPOCH", 6, right=True, priority=4),
)


def _cleaned(row: PartitionRow) -> int | None:
    return None if row.compaction is None else row.compaction.cleaned_ms


def _gain(row: PartitionRow) -> str | None:
    if row.compaction is None or row.compaction.cleaned_ms is None:
        return None
    found = row.compaction
    return f"{units.size(found.bytes_before)} to {units.size(found.bytes_after)}"


COMPACTION_COLUMNS: Final[tuple[Column[PartitionRow], ...]] = (
    Column(
        "dirty_ratio",
        "DIRTY",
        6,
        lambda row: None if row.compaction is None else row.compaction.dirty_ratio,
        text=units.percent,
        right=True,
        priority=1,
    ),
    Column(
        "cleaned_ms",
        "CLEANED",
        11,
        _cleaned,
        text=partial(units.day_and_minute, per_second=1000),
        priority=3,
        is_searched=False,
    ),
    Column("gain", "GAIN", 20, _gain, priority=2, is_searched=False),
    Column(
        "uncleanable",
        "UNCLEANABLE",
        14,
        lambda row: None if row.compaction is None else row.compaction.uncleanable,
        priority=2,
        grow=3,
        style=lambda _: palette.ALARM,
    ),
)
"""The columns of partitions of compacted topics on trionet brokers."""


class TopicView(View):
    """The partitions of a topic.

    Args:
        topic: the name of the topic.
    """

    name = "partitions"
    help = (
        "The partitions of one topic. Only trionet brokers report how a compacted topic is "
        "cleaned. Enter shows the records of a partition as they arrive, f the records of the "
        "whole topic, and c the configs of the topic."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "PART": "number of the partition",
        "LEADER": "id of the broker that leads it; -1 if none does",
        "REPLICAS": "ids of the brokers that have it",
        "IN SYNC": "ids of those that have all of its records",
        "FIRST END": "the first offset, and the one that the next record will have",
        "REC/S": "how fast END grows, per second",
        "SIZE": "size at the leader",
        "EPOCH": "leader epoch, the number of its leaders so far",
        "DIRTY": "the share that was not cleaned yet",
        "CLEANED": "when the last cleaning ended",
        "GAIN": "the size of what it has cleaned, before and afterwards",
        "UNCLEANABLE": "why it is not cleaned any more",
    }
    opens = "records"
    section: ClassVar[str | None] = "partitions"

    def __init__(self, topic: str) -> None:
        self.title = topic
        self.section_key = topic
        self.actions = (produce_to(lambda _: topic, needs_row=False),)
        self.links = (
            Link("f", "follow", "records of all", lambda _: TailView(topic, None)),
            Link("c", "settings", "configs", lambda _: ConfigsView("topic", topic)),
        )

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.topics.get(self.title)
        if row is not None:
            records = [] if row.records is None else [counted(row.records, "record")]
            rate = f"{units.rate(row.rate)} records/s"
            yield from pen.phrases([*records, units.size(row.bytes), rate, f"id {row.id}"])

    def table(self, model: Model) -> Table[PartitionRow]:
        rows = [row for row in model.partitions.values() if row.topic == self.title]
        columns = PARTITION_COLUMNS
        if any(row.compaction is not None for row in rows):
            columns += COMPACTION_COLUMNS
        found = table_of(model.partitions, columns, "topic", "number", sort="number")
        missing = found.missing
        if not rows and missing is None:
            is_gone = model.topics.is_whole and self.title not in model.topics
            missing = "the topic no longer exists" if is_gone else UNREAD
        return attrs.evolve(found, rows=rows, total=None, missing=missing)

    def opened(self, row: PartitionRow) -> View:
        return TailView(row.topic, row.number)
