"""Limits on connections and clients, with their current use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import bar, wrapped
from ..drawing._pen import Line, Pen
from ..drawing._table import Column, Table, rows_of
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import QuotaRow

#: Use of at least this fraction of a limit is highlighted.
CLOSE_SHARE: Final = 0.8


def _share(row: QuotaRow) -> float | None:
    return row.value / row.limit if row.limit and row.value is not None else None


def _style(row: QuotaRow) -> Style | None:
    share = _share(row)
    if share is None or share < CLOSE_SHARE:
        return None
    return palette.ALARM if share >= 1 else palette.NOTE


def _bar(row: QuotaRow, width: int, pen: Pen) -> Line:
    share = _share(row)
    if share is None:
        return []
    return [Segment(bar(min(share, 1.0), width, pen.glyphs), _style(row) or palette.CHART)]


def _now(value: float) -> str:
    return units.count(value) if float(value).is_integer() else units.rate(value)


QUOTA_COLUMNS: Final[tuple[Column[QuotaRow], ...]] = (
    Column("entity", "ENTITY", 20, lambda row: row.entity, grow=2),
    Column("key", "QUOTA", 24, lambda row: row.key, grow=2),
    Column("limit", "LIMIT", 9, lambda row: row.limit, units.count, right=True),
    Column("value", "NOW", 9, lambda row: row.value, _now, right=True, style=_style),
    Column("share", "USED", 10, _share, units.percent, priority=2, grow=1, draw=_bar),
    Column(
        "throttle_ms",
        "THROTTLE",
        8,
        lambda row: row.throttle_ms,
        lambda ms: units.duration(ms / 1000),
        right=True,
        priority=1,
    ),
    Column("refused", "REFUSED", 8, lambda row: row.refused, units.count, right=True, priority=1),
)


class QuotasView(View):
    """A table of connection quotas and client quotas."""

    name = "quotas"
    key = "7"
    title = "Quotas"
    help = (
        "Limits on connections of the broker, its listeners and addresses, with the current use, "
        "the mean throttle time of clients that exceed a limit, and the number of refused "
        "connections. Only a trionet broker's metrics report these limits. Below are the "
        "cluster's quotas for clients, users and addresses, whose use is not available over the "
        "Kafka protocol. An empty limit means unlimited."
    )
    section: ClassVar[str | None] = "quotas"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        missing = model.client_quotas_missing
        if missing is not None:
            for line in wrapped(missing, pen.width - 2, pen.glyphs):
                yield [pen.text(f" {line}", palette.NOTE)]

    def table(self, model: Model) -> Table[QuotaRow]:
        return Table(QUOTA_COLUMNS, key=lambda row: (row.entity, row.key), **rows_of(model.quotas))
