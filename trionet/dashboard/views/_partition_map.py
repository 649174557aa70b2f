"""The partition map: which member of a group owns which partition, a member a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs
from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen

if TYPE_CHECKING:
    from ..model._rows import GroupRow, MemberRow

Key = tuple[str, int]

#: The maximum number of partitions of a map, more than a screen is wide and half a millisecond of
#: work.
PARTITIONS_MAX: Final = 1_000
#: The widths of a member's name, of the step for which the group waits, and of the lag, in cells.
NAME_CELLS: Final = 18
_PHASE_CELLS: Final = 9
_LAG_CELLS: Final = 8
#: The number of characters of a member id that distinguishes members with one client id.
_ID_CHARS: Final = 4
_NO_MEMBER: Final = "no member"
_MOVED: Final = palette.LABELS[0]
_ORPHANED: Final = palette.BAR_ALARM


@attrs.frozen
class _Columns:
    """The partitions by topic, and how they are drawn.

    Attributes:
        topics: the partitions of each topic, ascending.
        cells: the width of a partition in each topic; 1 if numbers do not fit.
    """

    topics: Mapping[str, Sequence[int]]
    cells: Mapping[str, int]

    @classmethod
    def of(cls, keys: Collection[Key], width: int) -> _Columns:
        topics: dict[str, list[int]] = {}
        for topic, number in sorted(keys):
            topics.setdefault(topic, []).append(number)
        # A blank on both sides of the number, and one between two of them.
        cells = {topic: len(str(each[-1])) + 3 for topic, each in topics.items()}
        found = cls(topics, cells)
        if sum(map(found.width, topics)) <= width:
            return found
        return cls(topics, dict.fromkeys(topics, 1))

    def width(self, topic: str) -> int:
        """The width of a topic, with a blank at the end."""
        return len(self.topics[topic]) * self.cells[topic] + 1


def partition_map(row: GroupRow, pen: Pen) -> Iterator[Line]:
    """Draw a line for each member with its lag and its partitions among all.

    Partitions that have moved in the last rebalance stand out, as do those without an owner while
    the group has members. Numbers are left out where they do not fit. A group of very many
    partitions has no map.

    Args:
        row: the group.
        pen: the pen for drawing.
    """
    from ..model._rows import committed_lag  # loaded by now, since there is a row

    members = sorted(row.detail or (), key=_natural)
    if len(row.lags or ()) > PARTITIONS_MAX:
        return
    owned = {key for member in members for key in member.assignment}
    keys = owned | {(each.topic, each.partition) for each in row.lags or ()}
    if not keys and not members:
        return
    has_phase = any(member.phase not in (None, "stable") for member in members)
    left = 1 + NAME_CELLS + (_PHASE_CELLS if has_phase else 0) + _LAG_CELLS + 2
    columns = _Columns.of(keys, pen.width - left)
    yield _heading(columns, has_phase, pen)
    lags = {(each.topic, each.partition): each for each in row.lags or ()}
    names = names_of(members)
    for member in members[: pen.height]:
        phase = (member.phase or "") if has_phase else None
        lag = committed_lag(lags[key] for key in member.assignment if key in lags)
        beginning = _beginning(names[member.id], phase, lag, pen)
        yield beginning + _cells(columns, set(member.assignment), row.moved, palette.BAR, pen)
    orphans = keys - owned
    if orphans:
        style = _ORPHANED if members and row.state == "Stable" else palette.BAR
        lag = committed_lag(lags[key] for key in orphans if key in lags)
        beginning = _beginning(_NO_MEMBER, "" if has_phase else None, lag, pen)
        yield beginning + _cells(columns, orphans, (), style, pen)


def _natural(member: MemberRow) -> list[tuple[int, str]]:
    """Return the sort key by which consumer-2 comes before consumer-10."""
    parts = re.split(r"(\d+)", f"{member.client_id} {member.id}"[:100])
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def names_of(members: Sequence[MemberRow]) -> Mapping[str, str]:
    """Return the names of members by id.

    A name is an instance id or a client id. The end of the member id follows where several members
    would have one name, or one beginning of which the map shows no more.

    Args:
        members: all members of a group.
    """
    of = {member.id: member.instance_id or member.client_id or member.id for member in members}
    counts = Counter(name[:NAME_CELLS] for name in of.values())
    beginning = NAME_CELLS - 1 - _ID_CHARS
    return {
        id: name if counts[name[:NAME_CELLS]] == 1 else f"{name[:beginning]} {id[-_ID_CHARS:]}"
        for id, name in of.items()
    }


def _heading(columns: _Columns, has_phase: bool, pen: Pen) -> Line:
    line = [pen.cell(" member", NAME_CELLS + 1, palette.DIM)]
    if has_phase:
        line.append(pen.cell(" phase", _PHASE_CELLS, palette.DIM))
    line += [pen.cell("lag", _LAG_CELLS, palette.DIM, right=True), Segment("  ")]
    line += [pen.cell(topic, columns.width(topic), palette.DIM) for topic in columns.topics]
    return line


def _beginning(name: str, phase: str | None, lag: int | None, pen: Pen) -> Line:
    line = [Segment(" "), pen.cell(name, NAME_CELLS, palette.BOLD)]
    if phase is not None:
        line.append(pen.cell("" if phase == "stable" else f" {phase}", _PHASE_CELLS, palette.NOTE))
    shown = "" if lag is None else units.count(lag)
    return [*line, pen.cell(shown, _LAG_CELLS, right=True), Segment("  ")]


def _cells(
    columns: _Columns, owned: Collection[Key], moved: Collection[Key], style: Style, pen: Pen
) -> Line:
    runs: list[tuple[list[str], Style]] = []
    left = pen.width
    others = "." if pen.glyphs.is_ascii else pen.glyphs.dot
    for topic, numbers in columns.topics.items():
        cells = columns.cells[topic]
        for number in numbers:
            left -= cells
            if left < 0:
                break  # the screen ends before
            key = topic, number
            is_owned = key in owned
            has_moved = is_owned and key in moved
            shown = (_MOVED if has_moved else style) if is_owned else palette.DIM
            if cells == 1:
                glyph = "+" if has_moved else pen.glyphs.full if is_owned else others
                _put(runs, glyph, _plain(shown))
                continue
            text = f"{'+' if has_moved else ' '}{number} " if is_owned else f" {others} "
            _put(runs, text.center(cells - 1), shown)
            _put(runs, " ", palette.PLAIN)
        _put(runs, " ", palette.PLAIN)
    return [Segment("".join(texts), shown) for texts, shown in runs]


def _put(runs: list[tuple[list[str], Style]], text: str, style: Style) -> None:
    """Append a text, in one segment with the texts before it that have the same style."""
    if runs and runs[-1][1] is style:
        runs[-1][0].append(text)
    else:
        runs.append(([text], style))


def _plain(style: Style) -> Style:
    """Return the style of a full cell, which a reversed style would leave blank."""
    return {_MOVED: palette.PARTS[0], _ORPHANED: palette.ALARM, palette.BAR: palette.PLAIN}.get(
        style, style
    )
