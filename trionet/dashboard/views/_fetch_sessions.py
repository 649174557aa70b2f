"""Incremental fetch sessions (KIP-227)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ..drawing import _units as units
from ..drawing._table import Column, Table, rows_of
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import FetchSessionRow

SESSION_COLUMNS: Final[tuple[Column[FetchSessionRow], ...]] = (
    Column("id", "SESSION", 12, lambda row: row.id, right=True),
    Column("epoch", "EPOCH", 10, lambda row: row.epoch, "{:,}".format, right=True),
    Column("partitions", "PARTITIONS", 10, lambda row: row.partitions, units.count, right=True),
    Column("idle_seconds", "IDLE", 8, lambda row: row.idle_seconds, units.duration, right=True),
    Column(
        "uses_topic_ids",
        "NAMED BY",
        8,
        lambda row: row.uses_topic_ids,
        lambda value: "id" if value else "name",
        priority=1,
    ),
)


class FetchSessionsView(View):
    """A table of the fetch sessions in the broker's cache."""

    name = "sessions"
    key = "e"
    title = "Fetch sessions"
    help = (
        "The incremental fetch sessions in the broker's cache. With a session, a Fetch request "
        "only names the partitions that changed. EPOCH counts the fetches of a session."
    )
    section: ClassVar[str | None] = "fetch_sessions"

    def table(self, model: Model) -> Table[FetchSessionRow]:
        return Table(SESSION_COLUMNS, key=lambda row: row.number, **rows_of(model.fetch_sessions))
