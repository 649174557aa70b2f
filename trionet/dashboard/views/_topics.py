"""Topics and their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import sparkline
from ..drawing._pen import Line, Pen
from ..drawing._table import UNREAD, Column, Table, rows_of
from ..ui._view import Action, Field, Link, View
from ._configs import ConfigsView
from ._tail import TailView, produce_to

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import PartitionRow, TopicRow
    from ..sources._source import Source


def _history(row: TopicRow, width: int, pen: Pen) -> Line:
    values = [] if row.history is None else row.history.values(width)
    return [Segment(sparkline(values, width, pen.glyphs), palette.CHART)]


def _alarm_if(value: int) -> Style | None:
    return palette.ALARM if value else None


TOPIC_COLUMNS: Final[tuple[Column[TopicRow], ...]] = (
    Column("name", "TOPIC", 20, lambda row: row.name, grow=2),
    Column("partitions", "PARTS", 6, lambda row: row.partitions, units.count, right=True),
    Column("replicas", "REPL", 4, lambda row: row.replicas, right=True, priority=5),
    Column(
        "under_replicated",
        "!SYNC",
        5,
        lambda row: row.under_replicated,
        units.count,
        right=True,
        priority=3,
        style=lambda row: _alarm_if(row.under_replicated),
    ),
    Column(
        "leaderless",
        "!LEAD",
        5,
        lambda row: row.leaderless,
        units.count,
        right=True,
        priority=3,
        style=lambda row: _alarm_if(row.leaderless),
    ),
    Column("records", "RECORDS", 9, lambda row: row.records, units.count, right=True, priority=1),
    Column("rate", "REC/S", 8, lambda row: row.rate, units.rate, right=True),
    Column("bytes", "SIZE", 9, lambda row: row.bytes, units.size, right=True, priority=2),
    Column("trend", "TREND", 10, priority=4, grow=1, draw=_history),
    Column("is_internal", "INTERNAL", 0, lambda row: row.is_internal),
    Column("id", "ID", 0, lambda row: row.id),
)


def _wrong_number(answer: str, low: int) -> str | None:
    if answer.isdecimal() and int(answer) >= low:
        return None
    return f"must be an integer of at least {low}"


def _number_or_none(answer: str) -> int | None:
    return int(answer) if answer else None


async def _create(source: Source, _row: object, answers: Sequence[str]) -> str:
    name, partitions, replicas = answers
    return await source.actions.create_topic(
        name, _number_or_none(partitions), _number_or_none(replicas)
    )


async def _delete(source: Source, row: TopicRow, _answers: Sequence[str]) -> str:
    return await source.actions.delete_topic(row.name)


async def _grow(source: Source, row: TopicRow, answers: Sequence[str]) -> str:
    return await source.actions.add_partitions(row.name, int(answers[0]))


CREATE: Final = Action(
    "C",
    "create-topic",
    "create a topic",
    _create,
    fields=(
        Field("topic"),
        Field("partitions", check=lambda text: _wrong_number(text, 1), is_optional=True),
        Field("replicas", check=lambda text: _wrong_number(text, 1), is_optional=True),
    ),
    question=lambda _, answers: f"Create the topic {answers[0]}?",
    needs_row=False,
)
DELETE: Final = Action(
    "D",
    "delete-topic",
    "delete a topic",
    _delete,
    question=lambda row, _: f"Delete the topic {row.name} and all its records?",
)
GROW: Final = Action(
    "N",
    "add-partitions",
    "add partitions",
    _grow,
    fields=(
        Field(
            "partitions",
            default=lambda row: str(row.partitions + 1),
            check=lambda text: _wrong_number(text, 1),
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
        "All topics of the cluster. RECORDS is the number of offsets from the start to the end of "
        "all partitions, including compacted records and transaction markers. REC/S is the rate "
        "at which the end offsets grow. SIZE is the size at the leaders. !SYNC counts partitions "
        "with an out-of-sync replica, and !LEAD counts partitions without a leader. Enter shows "
        "the partitions, f the records as they arrive, and c the configs."
    )
    section: ClassVar[str | None] = "topics"
    actions: Sequence[Action] = (CREATE, DELETE, GROW, produce_to(lambda row: row.name))
    links: Sequence[Link] = (
        Link("f", "follow", "records", lambda row: TailView(row.name, None), needs_row=True),
        Link(
            "c", "settings", "configs", lambda row: ConfigsView("topic", row.name), needs_row=True
        ),
    )

    def table(self, model: Model) -> Table[TopicRow]:
        return Table(
            TOPIC_COLUMNS,
            key=lambda row: row.name,
            sort="name",
            **rows_of(model.topics),
        )

    def opened(self, row: TopicRow) -> View:
        return TopicView(row.name)


PARTITION_COLUMNS: Final[tuple[Column[PartitionRow], ...]] = (
    Column("number", "PART", 6, lambda row: row.number, right=True),
    Column("leader", "LEADER", 6, lambda row: row.leader, right=True),
    Column(
        "replicas",
        "REPLICAS",
        10,
        lambda row: ",".join(map(str, row.replicas)),
        priority=3,
        grow=1,
        is_searched=False,
    ),
    Column(
        "in_sync",
        "IN SYNC",
        10,
        lambda row: ",".join(map(str, row.in_sync)),
        priority=2,
        grow=1,
        is_searched=False,
        style=lambda row: _alarm_if(len(row.in_sync) < len(row.replicas)),
    ),
    Column("start_offset", "FIRST", 12, lambda row: row.start_offset, "{:,}".format, right=True),
    Column("end_offset", "END", 12, lambda row: row.end_offset, "{:,}".format, right=True),
    Column("rate", "REC/S", 8, lambda row: row.rate, units.rate, right=True),
    Column("bytes", "SIZE", 9, lambda row: row.bytes, units.size, right=True, priority=1),
    Column("leader_epoch", "EPOCH", 6, lambda row: row.leader_epoch, right=True, priority=4),
)


class TopicView(View):
    """The partitions of a topic.

    Args:
        topic: the name of the topic.
    """

    name = "partitions"
    help = (
        "The partitions of one topic: leader, in-sync replicas, start offset and end offset. "
        "Enter shows the records of a partition as they arrive, f the records of the whole topic, "
        "and c the configs of the topic."
    )
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
        if row is None:
            return
        yield [
            pen.text(
                f" {units.count(row.records)} records  {units.size(row.bytes)}"
                f"  {units.rate(row.rate)} records/s  id {row.id}",
                palette.DIM,
            )
        ]

    def table(self, model: Model) -> Table[PartitionRow]:
        rows = [row for row in model.partitions.values() if row.topic == self.title]
        section_rows = rows_of(model.partitions)
        section_rows["rows"], section_rows["total"] = rows, None
        if not rows and section_rows["missing"] is None:
            is_gone = model.topics.is_whole and self.title not in model.topics
            section_rows["missing"] = "the topic no longer exists" if is_gone else UNREAD
        return Table(
            PARTITION_COLUMNS,
            key=lambda row: (row.topic, row.number),
            sort="number",
            **section_rows,
        )

    def opened(self, row: PartitionRow) -> View:
        return TailView(row.topic, row.number)
