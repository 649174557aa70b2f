"""Transactions: states, ages and participants, and which of them hang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import attrs
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import UNREAD, Column, Table, table_of
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import TransactionPartitionRow, TransactionRow


def _alarm_style(_: TransactionRow) -> Style:
    return palette.ALARM


def _state_style(row: TransactionRow) -> Style | None:
    return palette.NOTE if row.state.startswith("Prepare") else None


def _partition_count(row: TransactionRow) -> int | None:
    return None if row.partitions is None else len(row.partitions)


TRANSACTION_COLUMNS: Final[tuple[Column[TransactionRow], ...]] = (
    Column("id", "TRANSACTIONAL ID", 16, grow=2),
    Column("state", "STATE", 14, style=_state_style),
    Column("age_seconds", "AGE", 7, text=units.duration, right=True),
    Column("hangs", "HANGS", 12, style=_alarm_style, grow=1, is_optional=True),
    Column("partitions", "PARTS", 5, _partition_count, units.count, right=True, priority=2),
    Column("timeout_seconds", "TIMEOUT", 7, text=units.duration, right=True, priority=3),
    Column("producer_id", "PRODUCER", 9, right=True, priority=1),
    Column("epoch", "EPOCH", 6, right=True, priority=4),
    Column("coordinator", "AT", 4, right=True, priority=5),
)


class TransactionsView(View):
    """A table of all transactional ids, and of open transactions that belong to none."""

    name = "transactions"
    key = "n"
    short = "txns"
    title = "Transactions"
    help = (
        "All transactional ids of the cluster with their current or last transactions. One hangs "
        "if it has exceeded its timeout by 5 minutes, or if partitions have open records that its "
        "coordinator does not know of. Then consumers with read_committed are stuck; `trionet "
        "transactions` can abort it. Enter shows the partitions."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "AGE": "time since an open transaction began; since its last record if no transactional id "
        "is known",
        "HANGS": "why no coordinator will end it; without this column, none hangs",
        "PARTS": "number of its partitions",
        "TIMEOUT": "transaction.timeout.ms of its producer",
        "PRODUCER": "producer id",
        "EPOCH": "producer epoch",
        "AT": "id of the broker that coordinates it",
    }
    empty = (
        "No transactional ids yet. A producer with a transactional.id registers it, as does "
        "trionet produce --transactional-id ID TOPIC."
    )
    opens = "partitions"
    section: ClassVar[str | None] = "transactions"

    def table(self, model: Model) -> Table[TransactionRow]:
        return table_of(
            model.transactions,
            TRANSACTION_COLUMNS,
            "id",
            "producer_id",
            sort="age_seconds",
            descending=True,
        )

    def opened(self, row: TransactionRow) -> View:
        return TransactionView(row.id, row.producer_id)


PARTICIPANT_COLUMNS: Final[tuple[Column[TransactionPartitionRow], ...]] = (
    Column("topic", "TOPIC", 16, grow=1),
    Column("partition", "PART", 5, right=True),
    Column("first_offset", "FROM", 12, text="{:,}".format, right=True),
    Column("idle_seconds", "LAST RECORD", 11, text=units.duration, right=True),
)


class TransactionView(View):
    """The partitions of one transaction that have no marker yet.

    Args:
        id: the transactional id, or an empty string.
        producer_id: the producer id.
    """

    name = "transaction"
    help = (
        "The partitions of the transaction that have no marker yet. A partition of "
        "__consumer_offsets stands for the offsets of groups."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "PART": "number of the partition",
        "FROM": "offset of the transaction's first record there",
        "LAST RECORD": "time since its last record there",
    }
    empty = "No partitions: the transaction has written nothing since it began, or has ended."
    section: ClassVar[str | None] = "transactions"

    def __init__(self, id: str, producer_id: int) -> None:
        self._key = id, producer_id
        self.title = id or f"producer {producer_id}"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.transactions.get(self._key)
        if row is None:
            return
        parts = [row.state, f"producer {row.producer_id}"]
        if row.epoch is not None:
            parts.append(f"epoch {row.epoch}")
        if row.timeout_seconds is not None:
            parts.append(f"timeout {units.duration(row.timeout_seconds)}")
        if row.coordinator is not None:
            parts.append(f"coordinator {row.coordinator}")
        yield from pen.phrases(parts)
        if row.hangs is not None:
            yield [pen.text(f" hangs: {row.hangs}", palette.ALARM)]

    def table(self, model: Model) -> Table[TransactionPartitionRow]:
        row = model.transactions.get(self._key)
        found: Table[TransactionPartitionRow] = table_of(
            model.transactions,  # type: ignore[arg-type] # its rows are replaced below
            PARTICIPANT_COLUMNS,
            "topic",
            "partition",
        )
        missing = found.missing
        if row is None:
            missing = missing or "the transaction has ended, or its producer id has changed"
        elif row.partitions is None:
            missing = missing or UNREAD
        rows = () if row is None else row.partitions or ()
        return attrs.evolve(found, rows=rows, missing=missing, total=None)
