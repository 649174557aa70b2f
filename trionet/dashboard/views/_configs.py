"""The configs of a topic or of a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from ..drawing import _palette as palette
from ..drawing._table import UNREAD, Column, Table, rows_of
from ..ui._view import Action, Field, View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import ConfigRow
    from ..sources._source import Source

CONFIG_COLUMNS: Final[tuple[Column[ConfigRow], ...]] = (
    Column("name", "CONFIG", 30, lambda row: row.name, grow=2),
    Column(
        "value",
        "VALUE",
        20,
        lambda row: "(secret)" if row.is_sensitive else row.value,
        grow=3,
        style=lambda row: None if row.is_default else palette.BOLD,
    ),
    Column("source", "SOURCE", 14, lambda row: row.source, priority=1, grow=1),
    Column(
        "is_read_only",
        "READ-ONLY",
        9,
        lambda row: row.is_read_only,
        lambda value: "yes" if value else "",
        priority=2,
    ),
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
    section: ClassVar[str | None] = "configs"

    def __init__(self, kind: str, name: str) -> None:
        self.title = f"configs of {kind} {name}"
        self.section_key = (kind, name)
        self._kind, self._of = kind, name
        self.actions = (
            Action(
                "A",
                "alter",
                "set a config",
                self._alter,
                fields=(Field("value", default=lambda row: row.value or ""),),
                question=lambda row, answers: f"Set {row.name} of {kind} {name} to {answers[0]}?",
            ),
            Action(
                "U",
                "unset",
                "reset a config",
                self._unset,
                question=lambda row, _: f"Reset {row.name} of {kind} {name} to its default?",
            ),
        )

    def table(self, model: Model) -> Table[ConfigRow]:
        if model.configs_of != self.section_key and model.configs.missing is None:
            return Table(CONFIG_COLUMNS, (), key=lambda row: row.name, missing=UNREAD)
        return Table(CONFIG_COLUMNS, key=lambda row: row.name, **rows_of(model.configs))

    async def _alter(self, source: Source, row: ConfigRow, answers: Sequence[str]) -> str:
        return await source.actions.alter_config(self._kind, self._of, row.name, answers[0])

    async def _unset(self, source: Source, row: ConfigRow, _answers: Sequence[str]) -> str:
        return await source.actions.alter_config(self._kind, self._of, row.name, None)
