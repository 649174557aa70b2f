"""Draws frames, each of which is the whole screen, or the help page, as lines of an exact width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Frame, Glyphs, Line, Pen, fit, wrapped
from ..drawing._table import (
    GAP,
    MARGIN,
    UNREAD,
    Column,
    Table,
    exactly,
    heading_line,
    layout,
    row_line,
)
from . import _bars as bars
from . import _help as help_page
from ._details import details, fitted, joined, split
from ._ui import Hits, Mode, Ui
from ._view_state import ViewState

if TYPE_CHECKING:
    from ..model._model import Model


#: The minimum size of the screen.
COLUMNS_MIN: Final = 60
LINES_MIN: Final = 15
#: The minimum number of lines that the summary of a view leaves for its table.
TABLE_LINES_MIN: Final = 5
#: The minimum age of data that the header shows, in seconds.
STALE_SECONDS: Final = 3.0
#: The maximum number of lines for alarms above a view. The help page shows all alarms in full.
ALARM_LINES_MAX: Final = 2
#: The maximum number of lines for a message or a question at the bottom.
FOOT_LINES_MAX: Final = 3
#: The minimum number of cells for typed text after a long label.
TYPED_CELLS_MIN: Final = 20
#: The words between the subject and the reason in the alarms of sources.
_COULD_NOT: Final = " could not be read: "
_ANSWERS: Final = " [y/N]"
Columns = Sequence[tuple[Column[Any], int]]


def draw(
    ui: Ui,
    model: Model,
    width: int,
    height: int,
    glyphs: Glyphs,
    stale_seconds: float = 0.0,
    now: float | None = None,
) -> Frame:
    """Draw a frame of the dashboard.

    Args:
        ui: the state to show; its :attr:`.Ui.hits` is updated.
        model: the data to show.
        width: the width of the screen, in cells.
        height: the height of the screen, in lines.
        glyphs: the characters for drawing.
        stale_seconds: the time since the last change of the model, in seconds.
        now: the time in seconds on the loop's clock, to show the age of data; None to show no age.
    """
    if width < COLUMNS_MIN or height < LINES_MIN:
        return _too_small(width, height)
    pen = Pen(width, height, glyphs)
    ui.hits = Hits()
    ui.current.update(model, is_paused=ui.is_paused)
    header = _header(ui, model, pen, stale_seconds, now)
    lines = [header, bars.tabs(ui, pen), _title(ui, pen, now), *_alarms(model, pen)]
    foot = _foot(ui, pen)
    room = height - len(lines) - len(foot)
    match ui.mode:
        case Mode.HELP:
            body = _help(ui, model, room, pen)
        case Mode.MENU:
            body = help_page.menu(ui, pen, len(lines), room)
        case _:
            body = _body(ui, model, len(lines), room, pen)
    body = body[:room]
    lines += body
    lines += [[] for _ in range(room - len(body))]
    lines += foot
    return Frame(width, [exactly(line, width, mark=glyphs.ellipsis) for line in lines])


def _too_small(width: int, height: int) -> Frame:
    texts = (
        f"This screen has {width} x {height} cells.",
        f"The dashboard needs {COLUMNS_MIN} x {LINES_MIN}.",
        "Enlarge the window, or press q.",
    )
    lines: list[Line] = [[Segment(line)] for line in texts[:height]]
    lines += [[] for _ in range(height - len(lines))]
    return Frame(width, [exactly(line, width) for line in lines])


def failed_frame(ui: Ui, model: Model, name: str, width: int, height: int, glyphs: Glyphs) -> Frame:
    """Draw the frame shown in place of a view that raised an exception.

    The view is not called. Alarms and messages are shown as usual.
    """
    pen = Pen(width, height, glyphs)
    texts = (
        f" ! The view {name} failed; see the log.",
        " Press a key to show another view.",
    )
    lines: list[Line] = [[Segment(line, palette.ALARM)] for line in texts]
    lines += [[], *_alarms(model, pen)]
    foot = _message(ui, pen)
    room = max(0, height - len(foot))
    lines = lines[:room]
    lines += [[] for _ in range(room - len(lines))]
    shown = [*lines, *foot][:height]
    return Frame(width, [exactly(line, width, mark=glyphs.ellipsis) for line in shown])


# Around the view.


def _header(ui: Ui, model: Model, pen: Pen, stale_seconds: float, now: float | None) -> Line:
    about = model.about
    parts = [f"{about.source} ({about.via})" if about.via else about.source, about.software or ""]
    if about.node_id is not None:
        parts.append(f"node {about.node_id}")
    if about.uptime_seconds is not None:
        parts.append(f"up {units.duration(about.uptime_seconds)}")
    right = " live "
    if ui.is_paused:
        right = " PAUSED: p resumes "
    elif model.failing:
        since = None if now is None else now - min(model.failing.values())
        right = " ! not live " if since is None else f" ! not live for {units.duration(since)} "
    elif model.responded_at is None:
        right = " connecting "
    elif stale_seconds >= STALE_SECONDS:
        right = f" ! no data for {units.duration(stale_seconds)} "
    style = palette.BAR_ALARM if ui.is_paused or "!" in right else palette.BAR
    if right == _LIVE:
        right, style = f" {pen.glyphs.lamp}{right}", palette.BAR_GOOD
    width = max(0, pen.width - len(right))
    left = f" trionet {pen.glyphs.dot} {parts[0]}"
    for part in filter(None, parts[1:]):
        if len(left) + len(part) + 2 <= width:  # only whole parts
            left += f"  {part}"
    return [pen.cell(left, width, palette.BAR), Segment(right, style)]


_LIVE: Final = " live "


def _title(ui: Ui, pen: Pen, now: float | None) -> Line:
    state, glyphs = ui.current, pen.glyphs
    line = [Segment(" ")]
    for index, each in enumerate(ui.trail):
        if index:
            line.append(Segment(f" {glyphs.into} ", palette.DIM))
        line.append(pen.text(each.view.title, palette.TITLE))
    table = state.table
    if table is not None and table.missing is None:
        known = max(len(table.rows), table.total or 0)
        shown = len(state.rows)
        many = f"{shown:,}" if shown == known else f"{shown:,} of {known:,}"
        line.append(Segment(f"  {many}", palette.DIM))
        if state.sorted_by is not None:
            mark = glyphs.falling if state.descending else glyphs.rising
            column = table.column(state.sorted_by)
            title = state.sorted_by if column is None else column.title
            line.append(Segment(f"  by {title} {mark}", palette.DIM))
        line += _age(table, now)
    if state.filter:
        line += [Segment("  filter ", palette.DIM), pen.text(state.filter, palette.NOTE)]
    return line


def _age(table: Table[Any], now: float | None) -> Line:
    """Format the age of the rows, unless the rows are new."""
    if table.as_of is None or now is None:
        return []
    seconds = now - table.as_of
    if not table.is_failing and seconds < STALE_SECONDS:
        return []
    text = f"as of {units.duration(max(0.0, seconds))} ago"
    if table.is_failing:
        return [Segment(f"  ! {text}", palette.ALARM)]
    return [Segment(f"  {text}", palette.DIM)]


def _alarms(model: Model, pen: Pen) -> list[Line]:
    """Draw the alarms. A single alarm may take all lines, and several take one line each."""
    texts = [f"! {text}" for text in _faults(model)]
    if len(texts) > ALARM_LINES_MAX:
        others = len(texts) - ALARM_LINES_MAX + 1
        texts[ALARM_LINES_MAX - 1 :] = [f"! and {others} more problems; press ? to see all"]
    lines_max = max(1, ALARM_LINES_MAX // max(1, len(texts)))
    return [line for text in texts for line in _few_lines(text, lines_max, pen, palette.ALARM)]


def _faults(model: Model) -> list[str]:
    """Return the alarms, merging alarms with the same reason, such as an unreachable broker."""
    of_reason: dict[str, list[str]] = {}
    for text in dict.fromkeys(model.problems):
        what, mark, reason = text.rpartition(_COULD_NOT)
        of_reason.setdefault(mark + reason, []).append(what)
    return [f"{', '.join(whats)}{reason}" for reason, whats in of_reason.items()]


def _few_lines(text: str, lines_max: int, pen: Pen, style: Style) -> list[Line]:
    """Wrap a text to at most ``lines_max`` lines, with an ellipsis if it is truncated."""
    lines = wrapped(text, pen.width - 2, pen.glyphs)
    if len(lines) > lines_max:
        rest = " ".join(lines[lines_max - 1 :])
        lines[lines_max - 1 :] = [fit(rest, pen.width - 2, glyphs=pen.glyphs)]
    return [[Segment(f" {line}", style)] for line in lines]


def _message(ui: Ui, pen: Pen) -> list[Line]:
    """Return the lines of the message or the text being typed, which do not depend on the view."""
    if ui.message is not None and ui.mode is not Mode.ASK:
        style = palette.ALARM if ui.message.is_alarm else palette.GOOD
        mark = "! " if ui.message.is_alarm else ""
        return _few_lines(f"{mark}{ui.message.text}", FOOT_LINES_MAX, pen, style)
    match ui.mode:
        case Mode.FILTER:
            return [_typed("/", ui, pen)]
        case Mode.COMMAND:
            return [_typed(":", ui, pen)]
        case _:
            return []


def _foot(ui: Ui, pen: Pen) -> list[Line]:
    message = _message(ui, pen)
    if message:
        return message
    match ui.mode:
        case Mode.ASK:
            return _asked(ui, pen)
        case Mode.CONFIRM:
            return _question(ui, pen)
        case _:
            return [bars.hints(ui, pen, pen.height - 1)]


def _question(ui: Ui, pen: Pen) -> list[Line]:
    assert ui.prompt is not None
    narrow = attrs.evolve(pen, width=pen.width - len(_ANSWERS))
    lines = _few_lines(ui.prompt.question, FOOT_LINES_MAX, narrow, palette.NOTE)
    last = exactly(lines[-1], narrow.width)
    for offset, key in ((2, "y"), (4, "n")):
        at = narrow.width + offset
        ui.hits.add_key(pen.height - 1, at, at + 1, key)
    return [*lines[:-1], [*last, Segment(_ANSWERS, palette.BOLD)]]


def _typed(label: str, ui: Ui, pen: Pen) -> Line:
    """Draw the text being typed, scrolled so that the cursor is visible."""
    entry = ui.editor
    if cell_len(label) > pen.width - TYPED_CELLS_MIN:
        label = fit(label, pen.width - TYPED_CELLS_MIN - 1, glyphs=pen.glyphs) + " "
    before = pen.text(entry.text[: entry.cursor]).text
    at = pen.text(entry.text[entry.cursor : entry.cursor + 1] or " ").text
    after = pen.text(entry.text[entry.cursor + 1 :]).text
    room = pen.width - cell_len(label) - cell_len(at) - 1
    while cell_len(before) > room:
        before = before[max(1, (cell_len(before) - room) // 2) :]
    return [
        Segment(label, palette.KEY),
        Segment(before),
        Segment(at, palette.BAR),
        Segment(after),
    ]


def _asked(ui: Ui, pen: Pen) -> list[Line]:
    """Draw the field being filled in, below a preview or the error about the last value."""
    assert ui.prompt is not None
    action, count = ui.prompt.action, len(ui.prompt.answers)
    field = action.fields[count]
    typed = _typed(pen.text(f" {action.label}, {field.label}: ").text, ui, pen)
    if ui.message is not None:
        text, style = f"! {ui.message.text}", palette.ALARM
    elif field.preview is not None:
        text, style = field.preview(ui.editor.text), palette.NOTE
    else:
        return [typed]
    return [*_few_lines(text, FOOT_LINES_MAX - 1, pen, style), typed]


# The view itself.


def _help(ui: Ui, model: Model, room: int, pen: Pen) -> list[Line]:
    lines = list(help_page.help_lines(ui.current.view, ui.views, _faults(model), pen))
    ui.help_top = max(0, min(ui.help_top, len(lines) - room))
    return lines[ui.help_top :]


def _body(ui: Ui, model: Model, row: int, room: int, pen: Pen) -> list[Line]:
    state = ui.current
    if state.summary is None or not state.is_frozen:
        state.summary = list(state.view.summary(model, pen))
    lines = state.summary[: max(0, room - TABLE_LINES_MIN)]
    room -= len(lines)
    if state.table is None:
        return lines + _scrolled(ui, model, room, attrs.evolve(pen, height=room))
    return lines + _rows(ui, model, row + len(lines), room, pen)


def _scrolled(ui: Ui, model: Model, room: int, pen: Pen) -> list[Line]:
    state = ui.current
    if state.lines is None or not state.is_frozen:
        state.lines = list(state.view.lines(model, pen))
    state.height = max(1, room)
    state.move_to(state.cursor)
    return state.lines[state.top : state.top + room]


def _rows(ui: Ui, model: Model, row: int, room: int, pen: Pen) -> list[Line]:
    state = ui.current
    table = state.table
    assert table is not None
    state.height = max(1, room - 1)
    if table.missing == UNREAD:
        # The broker may respond, but not have been asked for this yet.
        doing = "Waiting for" if model.responded_at is None else "Reading from"
        return [[], *pen.sentences(f"{doing} {model.about.source} ...", palette.DIM)]
    if table.missing is not None:
        return [[], *pen.sentences(table.missing, palette.NOTE)]
    at = split(pen, room, len(state.rows)) if ui.shows_details and state.rows else None
    if at is None:
        return _table_lines(ui, table, row, attrs.evolve(pen, height=room))
    shown = details(state, model, at.details)
    at = fitted(at, len(shown), len(state.rows))
    return joined(_table_lines(ui, table, row, at.table), shown, at)


def _table_lines(ui: Ui, table: Table[Any], row: int, pen: Pen) -> list[Line]:
    """Draw the titles of the columns and the rows for which the pen has room.

    Args:
        ui: the state.
        table: the table.
        row: the line of the titles on the screen.
        pen: the pen for drawing.
    """
    state = ui.current
    state.height = max(1, pen.height - 1)
    state.scroll()
    shown = state.rows[state.top : state.top + state.height]
    columns = layout(table.columns, pen.width, shown, state.longest, state.sorted_by)
    heading = heading_line(columns, pen, state.sorted_by, descending=state.descending, rows=shown)
    if not state.rows:
        return [heading, [], *no_rows(state, pen)]
    _register_table(ui, columns, row, pen)
    selected = state.cursor - state.top
    return [
        heading,
        *(
            row_line(table, columns, each_row, pen, is_selected=index == selected)
            for index, each_row in enumerate(shown)
        ),
    ]


def no_rows(state: ViewState, pen: Pen) -> list[Line]:
    """Draw the text in place of rows."""
    if state.is_updating:
        return pen.sentences(f"Searching for {state.filter!r} ...", palette.NOTE)
    text = f"No row matches {state.filter!r}." if state.filter else state.view.empty
    return pen.sentences(text, palette.NOTE)


def _register_table(ui: Ui, columns: Columns, row: int, pen: Pen) -> None:
    """Register the titles of columns and the rows for the mouse."""
    hits = ui.hits
    hits.heading_row, hits.body_row, hits.body_end = row, row + 1, pen.width
    column = MARGIN
    for each, width in columns:
        hits.headings.append((column, column + width, each.name))
        column += width + GAP
