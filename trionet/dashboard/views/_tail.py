"""The records of a topic as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs
from rich.segment import Segment
from rich.style import Style

from ..._util._text import counted
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import UNREAD, Column, Table, table_of
from ..model._tail import Form, dump, pretty
from ..ui._view import Action, Field, View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._tail import TailRow
    from ..sources._source import Source

#: The answer that stands for null, which produces a tombstone.
NULL: Final = "null"


#: Timestamps are in milliseconds.
_PER_SECOND: Final = 1000


def _form_style(row: TailRow) -> Style | None:
    return palette.DIM if row.form in (Form.HEX, Form.NULL) else None


TAIL_COLUMNS: Final[tuple[Column[TailRow], ...]] = (
    Column(
        "timestamp",
        "TIME",
        12,
        lambda row: None if row.timestamp < 0 else row.timestamp,
        partial(units.clock, per_second=_PER_SECOND),
        priority=1,
    ),
    Column("partition", "PART", 5, right=True, priority=2),
    Column("offset", "OFFSET", 10, right=True),
    # The details have the whole record.
    Column("key", "KEY", 12, lambda row: row.key_text, priority=1, grow=1, is_detail=False),
    Column("value", "VALUE", 20, lambda row: row.text, grow=4, style=_form_style, is_detail=False),
    Column("form", "TYPE", 4, lambda row: row.form.value, priority=3, is_searched=False),
    Column("value_bytes", "SIZE", 8, text=units.size, right=True, priority=2),
    Column("topic", "TOPIC", 0, is_searched=False),
)


def produce_to(topic_of: Callable[[Any], str], *, needs_row: bool = True) -> Action:
    """Return the action that produces a record.

    Args:
        topic_of: returns the topic, given the selected row.
        needs_row: whether the action depends on the row.
    """

    async def produce(source: Source, row: Any, answers: Sequence[str]) -> str:
        key, value = answers
        return await source.actions.produce(
            topic_of(row),
            None if value == NULL else value.encode(),
            key=key.encode() if key else None,
        )

    def question(row: Any, answers: Sequence[str]) -> str:
        what = "a tombstone" if answers[1] == NULL else "this record"
        return f"Write {what} to {topic_of(row)}?"

    return Action(
        "P",
        "produce",
        "produce a record",
        produce,
        fields=(
            Field("key", is_optional=True),
            Field(f"value ({NULL} for a tombstone)", is_optional=True),
        ),
        question=question,
        needs_row=needs_row,
    )


class TailView(View):
    """The last records of a topic, and new records as they arrive.

    Args:
        topic: the name of the topic.
        partition: the number of the partition; None for all.
    """

    name = "tail"
    help = (
        "The records of a topic, the newest first. Readable values are shown as text or JSON, and "
        "other values as hex digits. If records arrive faster than they can be read, some are "
        "skipped and counted. Enter shows a record with its headers. p freezes the screen."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "PART": "number of the partition",
        "TYPE": "text, json, hex or null",
        "SIZE": "size of the value",
    }
    opens = "record"
    section: ClassVar[str | None] = "tail"

    def __init__(self, topic: str, partition: int | None) -> None:
        self.title = topic if partition is None else f"{topic} {partition}"
        self.section_key = (topic, partition)
        self.empty = f"No records yet. P produces one, as does trionet produce {topic}."
        self.actions = (produce_to(lambda _: topic, needs_row=False),)

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        if model.tail.failure is not None:
            yield [pen.text(f" {model.tail.failure}", palette.ALARM)]
        elif model.tail_skipped:
            skipped = f" {counted(model.tail_skipped, 'record')} skipped"
            yield [pen.text(skipped, palette.NOTE)]

    def table(self, model: Model) -> Table[TailRow]:
        if model.tail_of != self.section_key:
            return Table(TAIL_COLUMNS, (), lambda row: row.number, missing=UNREAD)
        found = table_of(model.tail, TAIL_COLUMNS, "partition", "offset", ages=False)
        return attrs.evolve(found, version=(self.section_key, model.tail.version))

    def details(self, row: TailRow, model: Model, pen: Pen) -> Iterable[Line]:
        return RecordView(row).lines(model, pen)

    def opened(self, row: TailRow) -> View:
        return RecordView(row)


class RecordView(View):
    """One record.

    Args:
        row: the record.
    """

    name = "record"
    help = (
        "A record with its headers: the value as JSON or text if it is readable, and as hex "
        "digits. Only the first 4,096 bytes are shown."
    )

    def __init__(self, row: TailRow) -> None:
        self.title = f"{row.topic} {row.partition} offset {row.offset}"
        self._row = row

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - never changes
        row = self._row
        if row.timestamp >= 0:
            yield [pen.text(f" {units.moment(row.timestamp, _PER_SECOND)}", palette.DIM)]
        yield pen.rule(f"key, {units.size(row.key_bytes)}")
        yield from pen.sentences(row.key_text)
        for name, value in row.headers:
            yield pen.rule("header")
            shown = "null" if value is None else value.decode("utf-8", "backslashreplace")
            yield from pen.sentences(f"{name}: {shown}")
        yield pen.rule(f"value, {units.size(row.value_bytes)}, {row.form.value}")
        readable = pretty(row.value) if row.form is Form.JSON and row.value is not None else None
        if row.form is not Form.HEX:
            for line in readable or [row.text]:
                yield from pen.sentences(line)
        if row.value is not None:
            yield pen.rule("bytes")
            for line in dump(row.value):
                yield [Segment(f" {line}")]
