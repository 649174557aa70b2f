"""Groups: states, members and lag."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import attrs
from rich.style import Style

from ..._util._text import counted
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import UNREAD, Column, Table, axis_line, chart_line, table_of, trend_column
from ..sources._actions import ActionError, check_reset_position
from ..ui._view import Action, Field, Link, View
from ._partition_map import NAME_CELLS, names_of, partition_map

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import GroupRow, LagRow, MemberRow

R = TypeVar("R")

_RESTLESS: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def _state_style(row: GroupRow) -> Style | None:
    if row.state in _RESTLESS:
        return palette.NOTE
    return palette.GOOD if row.state == "Stable" else None


GROUP_COLUMNS: Final[tuple[Column[GroupRow], ...]] = (
    Column("id", "GROUP", 20, grow=2),
    Column("state", "STATE", 19, style=_state_style),
    Column(
        "state_seconds", "SINCE", 7, text=units.duration, right=True, priority=4, is_optional=True
    ),
    Column("members", "MEMBERS", 7, text=units.count, right=True, priority=1),
    Column("lag", "LAG", 9, text=units.count, right=True),
    Column("unread", "UNREAD", 7, text=units.count, right=True, priority=2, is_optional=True),
    trend_column("lag", 10, priority=3, grow=2),
    Column("generation", "GEN", 6, right=True, priority=2, is_optional=True),
    Column("type", "TYPE", 8, priority=3),
    Column("protocol_type", "PROTOCOL", 9, priority=6),
    Column("assignor", "ASSIGNOR", 16, priority=5, grow=1),
    Column("coordinator", "AT", 4, right=True, priority=5),
)


def _position_error(answer: str) -> str | None:
    try:
        check_reset_position(answer)
    except ActionError as error:
        return str(error)
    return None


RESET: Final = Action(
    "R",
    "reset",
    "reset a group",
    lambda source, row, answers: source.actions.reset_group(row.id, answers[1] or None, answers[0]),
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
    lambda source, row, _: source.actions.delete_group(row.id),
    question=lambda row, _: f"Delete the group {row.id} and its offsets?",
)


class GroupsView(View):
    """A table of all groups."""

    name = "groups"
    key = "6"
    title = "Groups"
    help = (
        "All groups of the cluster. Records between LAG and UNREAD were fetched, but their offsets "
        "are not committed yet. A group without a commit has no lag. Only a trionet broker reports "
        "SINCE and UNREAD. Only groups without members can be reset or deleted. Enter shows which "
        "member owns which partition."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "SINCE": "how long it has been in this state",
        "LAG": "offsets between the committed offsets and the end offsets of the partitions",
        "UNREAD": "offsets between the members' positions, from which they fetch next, and the "
        "end offsets",
        "TREND": "the lag of the last minutes, its largest value in each two seconds, also of the "
        "time in which other views were shown",
        "GEN": "the generation of a classic group, which only a trionet broker reports; the epoch "
        "of other groups",
        "TYPE": "classic, consumer (KIP-848), share or streams",
        "PROTOCOL": "what a classic group is for: consumer, or connect of Kafka Connect",
        "ASSIGNOR": "what assigns partitions to members",
        "AT": "id of the broker that coordinates it",
    }
    empty = (
        "No groups yet. A first member creates a group: trionet consume TOPIC -g GROUP, or "
        "any consumer with a group.id."
    )
    opens = "group"
    section: ClassVar[str | None] = "groups"
    actions: Sequence[Action] = (RESET, DELETE)

    def table(self, model: Model) -> Table[GroupRow]:
        return table_of(model.groups, GROUP_COLUMNS, "id", sort="id")

    def opened(self, row: GroupRow) -> View:
        return GroupView(row.id)

    def details(self, row: GroupRow, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002
        return partition_map(row, pen)


def _number(name: str, title: str, width: int, priority: int = 0) -> Column[LagRow]:
    return Column(
        name,
        title,
        width,
        text="{:,}".format,
        right=True,
        priority=priority,
        is_optional=name in ("position", "unread"),  # which only a trionet broker reports
    )


def _of_member(name: str, title: str, members: Sequence[MemberRow]) -> Column[LagRow]:
    """Return a column beside the table, by which a filter finds the partitions of a member."""
    values: Mapping[str | None, str | None] = {each.id: getattr(each, name) for each in members}
    return Column(name, title, 0, lambda row: values.get(row.member), is_searched=True)


def _lag_columns(members: Sequence[MemberRow]) -> tuple[Column[LagRow], ...]:
    """Return the columns of partitions, with members named as in the map."""
    names = names_of(members)

    def draw_member(row: LagRow, width: int, pen: Pen) -> Line:
        return [pen.cell("" if row.member is None else names.get(row.member, row.member), width)]

    return (
        Column("topic", "TOPIC", 16, grow=2),
        Column("partition", "PART", 5, right=True),
        _number("committed", "COMMITTED", 11),
        _number("position", "POSITION", 11, priority=2),
        _number("end", "END", 11),
        _number("lag", "LAG", 9),
        _number("unread", "UNREAD", 7, priority=2),
        Column("member", "MEMBER", NAME_CELLS, priority=1, grow=1, draw=draw_member),
        _of_member("client_id", "CLIENT ID", members),
        _of_member("instance_id", "INSTANCE", members),
        _number("start", "FIRST", 12, priority=3),
        Column(
            "metadata",
            "METADATA",
            8,
            lambda row: row.metadata or None,
            priority=4,
            grow=1,
            is_optional=True,
        ),
    )


def _assigned(row: MemberRow) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in row.assignment:
        topics.setdefault(topic, []).append(partition)
    return "  ".join(f"{topic} {','.join(map(str, each))}" for topic, each in topics.items())


def _member_columns(members: Sequence[MemberRow]) -> tuple[Column[MemberRow], ...]:
    """Return the columns of members, which are named as in the map."""
    names = names_of(members)

    def draw_name(row: MemberRow, width: int, pen: Pen) -> Line:
        return [pen.cell(names.get(row.id, row.id), width)]

    return (
        Column("id", "MEMBER", NAME_CELLS, grow=1, draw=draw_name),
        Column("client_host", "HOST", 15, priority=2),
        Column("partitions", "PARTS", 5, lambda row: len(row.assignment), units.count, right=True),
        Column("assignment", "ASSIGNMENT", 16, _assigned, priority=1, grow=3),
        Column("phase", "PHASE", 8, priority=1, is_optional=True),
        Column(
            "expires_seconds",
            "EXPIRES",
            7,
            text=units.duration,
            right=True,
            priority=3,
            is_optional=True,
        ),
        Column("is_leader", "LEADER", 6, text=units.yes, priority=4, is_optional=True),
        Column("epoch", "EPOCH", 6, right=True, priority=5, is_optional=True),
        Column("instance_id", "INSTANCE", 12, priority=5, is_optional=True),
        Column("client_id", "CLIENT ID", 14, priority=6),
    )


class _OneGroup(View):
    """A view of one group, below a line with its state.

    Args:
        group: the name of the group.
    """

    section: ClassVar[str | None] = "group"

    def __init__(self, group: str) -> None:
        self.section_key = self._group = group

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.groups.get(self._group)
        return () if row is None else _state_lines(row, pen)

    def _table(
        self,
        model: Model,
        rows_of: Callable[[GroupRow], Sequence[R] | None],
        columns_of: Callable[[Sequence[MemberRow]], Sequence[Column[R]]],
        *key: str,
    ) -> Table[R]:
        """Return a table of the group's rows, or of the reason why they are missing."""
        group = model.groups.get(self._group)
        rows = None if group is None else rows_of(group)
        members = () if group is None else group.detail or ()
        found: Table[Any] = table_of(model.groups, columns_of(members), *key)
        missing = found.missing
        if group is None:
            missing = missing or "the group no longer exists"
        elif rows is None:
            missing = missing or group.failure or UNREAD
        as_of = None if group is None else group.read_at
        return attrs.evolve(found, rows=rows or (), missing=missing, total=None, as_of=as_of)


class GroupView(_OneGroup):
    """The partitions of a group with committed offsets, lag and members."""

    name = "group"
    help = (
        "Above, a line for each member with its partitions; those that have just moved to it are "
        "marked with +, and dots stand for partitions of others. A member is named by its "
        "instance id or client id; if several have the same, the last characters of the member "
        "id follow. LAG is unknown without a committed offset. Only a trionet broker reports "
        "positions, as far as it knows them: clients of several groups that have one client id "
        "cannot be distinguished, and a client without fetch sessions, such as librdkafka, only "
        "has a position while it waits for records. v shows the members."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "PART": "number of the partition",
        "COMMITTED": "the offset from which a new owner would read",
        "POSITION": "the offset that the member fetches next",
        "END": "the offset that the next record will have",
        "LAG": "offsets from COMMITTED to END",
        "UNREAD": "offsets from POSITION to END",
        "FIRST": "the first offset of the partition",
        "METADATA": "what the consumer has committed beside the offset",
    }
    empty = (
        "No partitions yet: the group has committed no offsets, and no member has partitions. A "
        "member is assigned some once a topic that it subscribes to exists."
    )

    def __init__(self, group: str) -> None:
        super().__init__(group)
        self.title = group
        self.links = (Link("v", "members", "members", lambda _: MembersView(group)),)

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.groups.get(self._group)
        if row is None:
            return
        yield from _state_lines(row, pen)
        if row.history is not None:
            yield chart_line("lag", row.history.values(), units.count(row.lag), pen)
            yield axis_line(row.history, pen)
        yield from partition_map(row, pen)
        yield []

    def table(self, model: Model) -> Table[LagRow]:
        return self._table(model, lambda row: row.lags, _lag_columns, "topic", "partition")


class MembersView(_OneGroup):
    """The members of a group."""

    name = "members"
    help = (
        "The members of the group, named as in its map. Only a trionet broker reports PHASE, "
        "EXPIRES and LEADER."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "PARTS": "number of assigned partitions",
        "PHASE": "the step for which the group waits for the member, or the member for the group",
        "EXPIRES": "the time until it is removed unless it sends a heartbeat",
        "LEADER": "whether it assigns the partitions of a classic group",
        "EPOCH": "the epoch of a member of a group that is not classic",
        "INSTANCE": "its group.instance.id, of a static member",
    }
    empty = "No members: consumers of the group join it, as does trionet consume TOPIC -g GROUP."

    def __init__(self, group: str) -> None:
        super().__init__(group)
        self.title = f"members of {group}"

    def table(self, model: Model) -> Table[MemberRow]:
        return self._table(model, lambda row: row.detail, _member_columns, "id")


def _state_lines(row: GroupRow, pen: Pen) -> list[Line]:
    parts = [row.state, f"lag {units.count(row.lag)}"]
    if row.members is not None:
        parts.insert(1, counted(row.members, "member"))
    if row.unread is not None:
        parts.append(f"unread {units.count(row.unread)}")
    if row.generation is not None:
        parts.append(f"generation {row.generation}")
    if row.state_seconds is not None:
        parts.append(f"for {units.duration(row.state_seconds)}")
    if row.assignor:
        parts.append(row.assignor)
    return pen.phrases(parts)
