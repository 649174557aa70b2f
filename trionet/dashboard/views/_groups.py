"""Groups: states, members and lag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._pen import Line, Pen
from ..drawing._table import UNREAD, Column, Table, TableRows, rows_of
from ..sources._actions import ActionError, check_reset_position
from ..ui._view import Action, Field, Link, View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import GroupRow, LagRow, MemberRow
    from ..sources._source import Source

R = TypeVar("R")

_RESTLESS: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def _state_style(row: GroupRow) -> Style | None:
    if row.state in _RESTLESS:
        return palette.NOTE
    return palette.GOOD if row.state == "Stable" else None


GROUP_COLUMNS: Final[tuple[Column[GroupRow], ...]] = (
    Column("id", "GROUP", 20, lambda row: row.id, grow=2),
    Column("state", "STATE", 19, lambda row: row.state, style=_state_style),
    Column(
        "state_seconds",
        "SINCE",
        7,
        lambda row: row.state_seconds,
        units.duration,
        right=True,
        priority=4,
    ),
    Column("members", "MEMBERS", 7, lambda row: row.members, units.count, right=True, priority=1),
    Column("lag", "LAG", 9, lambda row: row.lag, units.count, right=True),
    Column("generation", "GEN", 6, lambda row: row.generation, right=True, priority=2),
    Column("type", "TYPE", 8, lambda row: row.type, priority=3),
    Column("protocol_type", "PROTOCOL", 9, lambda row: row.protocol_type, priority=6),
    Column("assignor", "ASSIGNOR", 16, lambda row: row.assignor, priority=5, grow=1),
    Column("coordinator", "AT", 4, lambda row: row.coordinator, right=True, priority=5),
)


def _position_error(answer: str) -> str | None:
    try:
        check_reset_position(answer)
    except ActionError as error:
        return str(error)
    return None


async def _reset(source: Source, row: GroupRow, answers: Sequence[str]) -> str:
    to, topic = answers
    return await source.actions.reset_group(row.id, topic or None, to)


async def _delete(source: Source, row: GroupRow, _answers: Sequence[str]) -> str:
    return await source.actions.delete_group(row.id)


RESET: Final = Action(
    "R",
    "reset",
    "reset a group",
    _reset,
    fields=(
        Field("to (start, end, an offset, +N, -N)", check=_position_error),
        Field("topic (empty: all)", is_optional=True),
    ),
    question=lambda row, answers: (
        f"Reset {row.id} to {answers[0]} in {answers[1] or 'all its topics'}?"
    ),
)
DELETE: Final = Action(
    "D",
    "delete-group",
    "delete a group",
    _delete,
    question=lambda row, _: f"Delete the group {row.id} and its offsets?",
)


class GroupsView(View):
    """A table of all groups."""

    name = "groups"
    key = "6"
    title = "Groups"
    help = (
        "All groups of the cluster. LAG is the number of offsets between a group's committed "
        "offsets and the end offsets of the partitions. GEN is the generation of a classic group, "
        "which only a trionet broker's metrics report, or the epoch of another group. Only groups "
        "without members can be reset or deleted. Enter shows members and partitions."
    )
    section: ClassVar[str | None] = "groups"
    actions: Sequence[Action] = (RESET, DELETE)

    def table(self, model: Model) -> Table[GroupRow]:
        return Table(GROUP_COLUMNS, key=lambda row: row.id, sort="id", **rows_of(model.groups))

    def opened(self, row: GroupRow) -> View:
        return GroupView(row.id)


LAG_COLUMNS: Final[tuple[Column[LagRow], ...]] = (
    Column("topic", "TOPIC", 16, lambda row: row.topic, grow=2),
    Column("partition", "PART", 5, lambda row: row.partition, right=True),
    Column("committed", "COMMITTED", 12, lambda row: row.committed, "{:,}".format, right=True),
    Column("end", "END", 12, lambda row: row.end, "{:,}".format, right=True),
    Column("lag", "LAG", 10, lambda row: row.lag, "{:,}".format, right=True),
    Column("member", "MEMBER", 16, lambda row: row.member, priority=1, grow=3),
    Column("start", "FIRST", 12, lambda row: row.start, "{:,}".format, right=True, priority=3),
    Column("metadata", "METADATA", 8, lambda row: row.metadata or None, priority=4, grow=1),
)


class GroupView(View):
    """The partitions of a group with committed offsets, lag and members.

    Args:
        group: the name of the group.
    """

    name = "group"
    help = (
        "The committed offset of each partition, and the member to which the partition is "
        "assigned. LAG is unknown without a committed offset. v shows the members."
    )
    section: ClassVar[str | None] = "group"

    def __init__(self, group: str) -> None:
        self.title = group
        self.section_key = group
        self.links = (Link("v", "members", "members", lambda _: MembersView(group)),)

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.groups.get(self.title)
        if row is not None:
            yield from group_lines(row, pen)

    def table(self, model: Model) -> Table[LagRow]:
        row = model.groups.get(self.title)
        lags = None if row is None else row.lags
        section_rows = _of_group(model, row, lags)
        return Table(LAG_COLUMNS, key=lambda row: (row.topic, row.partition), **section_rows)


class MembersView(View):
    """The members of a group.

    Args:
        group: the name of the group.
    """

    name = "members"
    help = (
        "The members of the group. PHASE is the step for which the group waits for the member, or "
        "the member for the group. EXPIRES is the time until a member is removed unless it sends "
        "a heartbeat. Only a trionet broker's metrics report PHASE and EXPIRES."
    )
    section: ClassVar[str | None] = "group"

    def __init__(self, group: str) -> None:
        self.title = f"members of {group}"
        self.section_key = group
        self._group = group

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.groups.get(self._group)
        if row is not None:
            yield from group_lines(row, pen)

    def table(self, model: Model) -> Table[MemberRow]:
        row = model.groups.get(self._group)
        members = None if row is None else row.detail
        return Table(MEMBER_COLUMNS, key=lambda row: row.id, **_of_group(model, row, members))


def _of_group(model: Model, row: GroupRow | None, rows: Sequence[R] | None) -> TableRows[R]:
    """Return the rows of a group for a table, or the reason why the rows are missing."""
    section_rows = rows_of(model.groups)
    missing = section_rows["missing"]
    if row is None:
        missing = missing or "the group no longer exists"
    elif rows is None:
        missing = missing or row.failure or UNREAD
    return {
        "rows": rows or (),
        "missing": missing,
        "total": None,
        "version": section_rows["version"],
        "as_of": None if row is None else row.read_at,
        "is_failing": section_rows["is_failing"],
    }


def _assigned(row: MemberRow) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in row.assignment:
        topics.setdefault(topic, []).append(partition)
    return "  ".join(f"{topic} {','.join(map(str, each))}" for topic, each in topics.items())


MEMBER_COLUMNS: Final[tuple[Column[MemberRow], ...]] = (
    Column("client_id", "CLIENT ID", 14, lambda row: row.client_id, grow=1),
    Column("client_host", "HOST", 15, lambda row: row.client_host, priority=2),
    Column("partitions", "PARTS", 5, lambda row: len(row.assignment), units.count, right=True),
    Column("assignment", "ASSIGNMENT", 16, _assigned, priority=1, grow=3),
    Column("phase", "PHASE", 8, lambda row: row.phase, priority=1),
    Column(
        "expires_seconds",
        "EXPIRES",
        7,
        lambda row: row.expires_seconds,
        units.duration,
        right=True,
        priority=3,
    ),
    Column(
        "is_leader",
        "LEADER",
        6,
        lambda row: row.is_leader,
        lambda value: "yes" if value else "",
        priority=4,
    ),
    Column("epoch", "EPOCH", 6, lambda row: row.epoch, right=True, priority=5),
    Column("instance_id", "INSTANCE", 12, lambda row: row.instance_id, priority=5),
    Column("id", "ID", 20, lambda row: row.id, priority=6, grow=2),
)


def group_lines(row: GroupRow, pen: Pen) -> Iterable[Line]:
    """Return the lines that describe the state of a group."""
    parts = [row.state, f"{units.count(row.members)} members", f"lag {units.count(row.lag)}"]
    if row.generation is not None:
        parts.append(f"generation {row.generation}")
    if row.state_seconds is not None:
        parts.append(f"for {units.duration(row.state_seconds)}")
    if row.assignor:
        parts.append(row.assignor)
    yield [pen.text(f" {'  '.join(parts)}", palette.DIM)]
