"""The brokers of the cluster, the configs of brokers and topics, and quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._graphs import meter
from ..drawing._table import UNREAD, Column, Table, table_of
from ..ui._view import Action, Field, View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import BrokerRow, ConfigRow, QuotaRow

#: Use of at least this fraction of a limit is highlighted.
CLOSE_SHARE: Final = 0.8

BROKER_COLUMNS: Final[tuple[Column[BrokerRow], ...]] = (
    Column("id", "ID", 6, right=True),
    Column("host", "HOST", 20, grow=1),
    Column("port", "PORT", 6, right=True),
    Column("rack", "RACK", 10, priority=2, is_optional=True),
    Column("is_controller", "CONTROLLER", 10, text=units.yes, priority=1),
    Column("leads", "LEADS", 8, text=units.count, right=True),
    Column("bytes", "SIZE", 9, text=units.size, right=True, priority=1),
)


class BrokersView(View):
    """A table of the brokers, with the number and size of the partitions that each leads."""

    name = "brokers"
    key = "b"
    title = "Brokers"
    help = (
        "The brokers of the cluster, as they advertise themselves. Enter shows the configs of a "
        "broker."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "ID": "its node.id",
        "CONTROLLER": "whether it decides about topics and leaders",
        "LEADS": "number of partitions that it leads",
        "SIZE": "size of those of them whose size is known",
    }
    empty = "No brokers: none has registered with the cluster's controller yet."
    opens = "configs"
    section: ClassVar[str | None] = "brokers"

    def table(self, model: Model) -> Table[BrokerRow]:
        return table_of(model.brokers, BROKER_COLUMNS, "id", sort="id")

    def opened(self, row: BrokerRow) -> View:
        return ConfigsView("broker", str(row.id))


CONFIG_COLUMNS: Final[tuple[Column[ConfigRow], ...]] = (
    Column("name", "CONFIG", 30, grow=2),
    Column(
        "value",
        "VALUE",
        20,
        lambda row: "(secret)" if row.is_sensitive else row.value,
        grow=3,
        style=lambda row: None if row.is_default else palette.BOLD,
    ),
    Column("source", "SOURCE", 14, priority=1, grow=1),
    Column("is_read_only", "READ-ONLY", 9, text=units.yes, priority=2),
)


class ConfigsView(View):
    """The configs of one topic or broker.

    Args:
        kind: ``topic`` or ``broker``.
        name: the name of the topic, or the id of the broker.
    """

    name = "configs"
    help = (
        "The effective configs and the source of each. Configs that were set are bold. READ-ONLY "
        "configs cannot be changed while the broker is running. Changes take effect immediately."
    )
    empty = "No configs: the broker reports none to this user."
    section: ClassVar[str | None] = "configs"

    def __init__(self, kind: str, name: str) -> None:
        self.title = f"configs of {kind} {name}"
        self.section_key = (kind, name)
        self.actions = (
            Action(
                "A",
                "alter",
                "set a config",
                lambda source, row, answers: source.actions.alter_config(
                    kind, name, row.name, answers[0]
                ),
                fields=(Field("value", default=lambda row: row.value or ""),),
                question=lambda row, answers: f"Set {row.name} of {kind} {name} to {answers[0]}?",
            ),
            Action(
                "U",
                "unset",
                "reset a config",
                lambda source, row, _: source.actions.alter_config(kind, name, row.name, None),
                question=lambda row, _: f"Reset {row.name} of {kind} {name} to its default?",
            ),
        )

    def table(self, model: Model) -> Table[ConfigRow]:
        if model.configs_of != self.section_key and model.configs.missing is None:
            return Table(CONFIG_COLUMNS, (), lambda row: row.name, missing=UNREAD)
        return table_of(model.configs, CONFIG_COLUMNS, "name")


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
    return meter(share, width, pen, _style(row) or palette.CHART)


def _amount(name: str, row: QuotaRow) -> str:
    """Format the limit of a quota, or its current use, in the unit of the quota."""
    value = getattr(row, name)
    if row.key.endswith("_byte_rate"):
        return f"{units.size(value)}/s"
    if row.key == "request_percentage":
        return units.percent(value / 100)
    return units.count(value) if float(value).is_integer() else units.rate(value)


QUOTA_COLUMNS: Final[tuple[Column[QuotaRow], ...]] = (
    Column("entity", "ENTITY", 16, grow=2),
    Column("key", "QUOTA", 20, grow=2),
    Column("limit", "LIMIT", 10, right=True, text_of=partial(_amount, "limit")),
    Column(
        "value",
        "NOW",
        10,
        right=True,
        style=_style,
        is_optional=True,
        text_of=partial(_amount, "value"),
    ),
    Column(
        "share", "USED", 10, _share, units.percent, priority=2, grow=1, draw=_bar, is_optional=True
    ),
    Column(
        "throttle_ms",
        "THROTTLE",
        8,
        text=units.milliseconds,
        right=True,
        priority=1,
        is_optional=True,
    ),
    Column("refused", "REFUSED", 8, text=units.count, right=True, priority=1, is_optional=True),
)


class QuotasView(View):
    """A table of connection quotas and client quotas."""

    name = "quotas"
    key = "7"
    title = "Quotas"
    help = (
        "Limits on connections of the broker, its listeners and addresses, which only a trionet "
        "broker reports. Below are the cluster's quotas for clients, users and addresses, whose "
        "use is not available over the Kafka protocol. An empty limit means unlimited."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "ENTITY": "what the limit is about",
        "NOW": "the current use, in the unit of the limit",
        "USED": "its share of the limit",
        "THROTTLE": "the mean throttle time of clients that exceed the limit",
        "REFUSED": "number of connections refused since the start",
    }
    empty = (
        "No quotas: clients are not limited. One is set by trionet configs quotas alter --name "
        "user=NAME --set producer_byte_rate=NUMBER."
    )
    section: ClassVar[str | None] = "quotas"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        missing = model.client_quotas_missing
        return () if missing is None else pen.sentences(missing, palette.NOTE)

    def table(self, model: Model) -> Table[QuotaRow]:
        return table_of(model.quotas, QUOTA_COLUMNS, "entity", "key")
