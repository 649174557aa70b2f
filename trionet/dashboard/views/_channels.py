"""Blocks of the overview about channels: what mutes them, what is staged, and the busiest ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from ..._util._text import counted
from ..drawing import _figure_lines as figure_lines
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import Column, Table, heading_line, layout, row_line

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import ConnectionRow

#: The phases of channels that neither wait nor are about to be read.
_AT_REST: Final = ("idle", "staged")
FIGURES: Final = ("muted", "staged")


def peer_of(row: ConnectionRow) -> str:
    """Return the address of the peer."""
    # Older brokers do not report the peer; the id contains it.
    return row.peer or row.id


BUSIEST_COLUMNS: Final[tuple[Column[ConnectionRow], ...]] = (
    Column("peer", "PEER", 21, peer_of),
    Column("client_id", "CLIENT ID", 12, grow=2),
    Column("request_rate", "REQ/S", 8, text=units.rate, right=True),
    Column("byte_rate", "BYTES/S", 9, text=units.size, right=True),
    Column("phase", "PHASE", 14, priority=1, grow=1),
    Column("request", "REQUEST", 12, priority=2, grow=1),
    Column("request_seconds", "FOR", 7, text=units.duration, right=True, priority=2),
    Column("staged", "STAGED", 6, right=True, priority=3),
)


def strip(model: Model, pen: Pen) -> Iterator[Line]:
    """Draw how many channels are muted, how many receives are staged, and why."""
    if model.channels is not None:
        yield from figure_lines.charts(model, FIGURES, pen)
        yield from reasons(model, pen)


def reasons(model: Model, pen: Pen) -> Iterator[Line]:
    """Draw the phases of the channels, the most frequent first, as far as the line has room."""
    counts = model.channels
    if counts is None:
        return
    shown = [(phase, count) for phase, count in counts.phases.items() if phase not in _AT_REST]
    shown.sort(key=lambda each: -each[1])
    texts = [(phase, f"{count:,}") for phase, count in shown] or [("", "all idle")]
    if counts.staged:
        texts.append(("staged in", counted(counts.with_staged, "channel")))
    if counts.examined < counts.total:
        texts.append(("of the first", units.count(counts.examined)))
    yield from islice(figure_lines.names_and_values(texts, pen), 1)


def busiest(model: Model, count: int, pen: Pen) -> Iterator[Line]:
    """Draw a table of the channels with the most requests, and then bytes, per second.

    Dashboards are summed up below: they would be the busiest ones of a broker with little to do,
    but those who look at them ask what the broker does for others.

    Args:
        model: the model.
        count: the maximum number of channels.
        pen: the pen for drawing.
    """
    if model.connections.missing is not None:
        return
    rows = [row for row in model.busiest[:count] if row.request_rate]
    if rows:
        table = Table(BUSIEST_COLUMNS, rows, lambda row: row.number)
        columns = layout(table.columns, pen.width, rows)
        yield heading_line(columns, pen, "request_rate", descending=True)
        for row in rows:
            yield row_line(table, columns, row, pen, is_selected=False)
    own = model.dashboards
    if own:
        rate = units.rate(sum(row.request_rate or 0.0 for row in own))
        text = f" {counted(len(own), 'channel')} of dashboards: {rate} req/s"
        yield [pen.text(text, palette.DIM)]
