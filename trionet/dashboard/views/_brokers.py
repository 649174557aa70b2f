"""The brokers of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ..drawing import _units as units
from ..drawing._table import Column, Table, rows_of
from ..ui._view import View
from ._configs import ConfigsView

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import BrokerRow

BROKER_COLUMNS: Final[tuple[Column[BrokerRow], ...]] = (
    Column("id", "ID", 6, lambda row: row.id, right=True),
    Column("host", "HOST", 20, lambda row: row.host, grow=1),
    Column("port", "PORT", 6, lambda row: row.port, right=True),
    Column("rack", "RACK", 10, lambda row: row.rack, priority=2),
    Column(
        "is_controller",
        "CONTROLLER",
        10,
        lambda row: row.is_controller,
        lambda value: "yes" if value else "",
        priority=1,
    ),
    Column("leads", "LEADS", 8, lambda row: row.leads, units.count, right=True),
    Column("bytes", "SIZE", 9, lambda row: row.bytes, units.size, right=True, priority=1),
)


class BrokersView(View):
    """A table of the brokers, with the number and size of the partitions that each leads."""

    name = "brokers"
    key = "b"
    title = "Brokers"
    help = (
        "The brokers of the cluster, the number of partitions that each broker leads, and the "
        "total size of the partitions with a known size. Enter shows the configs of a broker."
    )
    section: ClassVar[str | None] = "brokers"

    def table(self, model: Model) -> Table[BrokerRow]:
        return Table(BROKER_COLUMNS, key=lambda row: row.id, sort="id", **rows_of(model.brokers))

    def opened(self, row: BrokerRow) -> View:
        return ConfigsView("broker", str(row.id))
