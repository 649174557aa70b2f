"""The dashboard without a screen: a view printed once, or a line of figures at an interval."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, Final

import attrs
import trio

from .._util._raising import raise_single_error
from ..errors import TrionetError
from .drawing import _figure_lines as figure_lines
from .drawing import _palette as palette
from .drawing._cells import ASCII, PICTURE, UNICODE, Frame, Glyphs, Line, Pen, wrapped
from .drawing._export import FRAME_FORMS, TABLE_FORMS, as_csv, as_json, as_text
from .drawing._table import exactly, heading_line, layout, row_line
from .drawing._themes import DARK
from .model._figures import FIGURES
from .model._model import Model
from .model._pipeline import Pipeline
from .model._section import Section
from .ui._screen import draw, no_rows
from .ui._ui import Ui
from .ui._view import View
from .ui._view_state import ViewState
from .views import all_views

if TYPE_CHECKING:
    from .sources._source import Source

#: The time between the two reads that rates require.
LOOK_SECONDS: Final = 0.5
#: The time limit for the source, after which the available data is shown.
WAIT_SECONDS: Final = 15.0
#: The number of lines of figures after which the headings are repeated.
HEADINGS_EVERY: Final = 20

#: The headings and widths of the figures in a line, keyed by name.
ROLLING: Final[Mapping[str, tuple[str, int]]] = {
    "requests": ("REQUESTS", 10),
    "errors": ("ERRORS", 8),
    "bytes_in": ("BYTES IN", 11),
    "bytes_out": ("BYTES OUT", 11),
    "connections": ("CONNS", 7),
    "in_flight": ("IN FLIGHT", 9),
    "request_queue": ("QUEUE", 6),
    "loop_idle": ("IDLE", 6),
    "loop_lag_p99": ("LAG P99", 8),
    "records": ("RECORDS", 9),
    "topics": ("TOPICS", 7),
    "partitions": ("PARTS", 7),
    "under_replicated": ("UNDER", 6),
    "groups": ("GROUPS", 7),
    "lag": ("GROUP LAG", 9),
}

#: The formats of :func:`render_once`.
PICTURES: Final = tuple(form for form in FRAME_FORMS if form != "txt")
ONCE_FORMS: Final = ("text", *PICTURES, *TABLE_FORMS)
#: The formats of :func:`roll`.
ROLLING_FORMS: Final = ("text", "json", "csv")


class NoDataError(TrionetError):
    """Raised when a view's data cannot be read or is not available from the source."""


class UnreachableError(NoDataError):
    """Raised when no broker can be reached; the message says why."""


class NotATableError(Exception):
    """Raised when a filter, JSON or CSV is requested for a view without a table."""


@attrs.frozen
class OnceOptions:
    """The options for printing a view once.

    Attributes:
        view: the name of the view.
        form: the format, one of :data:`ONCE_FORMS`.
        width: the width in cells.
        height: the height of a picture in lines; text has as many lines as the view.
        ascii: whether to print only ASCII.
        filter: the filter for rows, in the syntax of ``/``.
        theme: the theme of a picture.
        is_terminal: whether the output goes to a terminal, which must not interpret names in CSV.
    """

    view: str = "overview"
    form: str = "text"
    width: int = 120
    height: int = 40
    ascii: bool = False
    filter: str = ""
    theme: str = DARK
    is_terminal: bool = False

    @property
    def glyphs(self) -> Glyphs:
        """The characters for drawing."""
        if self.ascii:
            return ASCII
        return PICTURE if self.form in PICTURES else UNICODE


async def render_once(source: Source, options: OnceOptions) -> str:
    """Read a source until rates are known, and return the rendered view.

    Args:
        source: the source to show.
        options: the view and the format.

    Raises:
        NotATableError: a filter, JSON or CSV was requested for a view without a table.
        UnreachableError: no broker can be reached.
        NoDataError: nothing could be read, or only a part of the pipeline's results, or the source
            does not have the view's data.
    """
    ui = Ui(all_views(), options.view)
    model = Model()
    with raise_single_error():
        async with trio.open_nursery() as nursery:
            await _read(source, model, ui.current.view, nursery)
            nursery.cancel_scope.cancel(reason="the view was read")
    if not has_data(model, ui.current.view) or _failure(model, ui.current.view) is not None:
        if model.unreachable is not None:
            raise UnreachableError(model.unreachable)
        raise NoDataError(_why_no_data(source, model, ui.current.view))
    ui.current.filter = options.filter
    ui.current.update_fully(model)
    if ui.current.table is None and options.filter:
        raise NotATableError(f"--filter: the view {options.view} has no rows")
    if ui.current.table is not None and ui.current.table.missing is not None:
        raise NoDataError(ui.current.table.missing)
    form, width, height, glyphs = options.form, options.width, options.height, options.glyphs
    if form in PICTURES:
        return FRAME_FORMS[form](draw(ui, model, width, height, glyphs), options.theme)
    if form == "text":
        pen = Pen(width, height, glyphs)
        return as_text(Frame(width, whole_view(ui.current, model, pen)))
    if ui.current.table is None:
        raise NotATableError(
            f"--format {form}: the view {options.view} has no table; use --interval to print its"
            " figures"
        )
    if form == "csv":
        return as_csv(ui.current.table, ui.current.rows, is_terminal=options.is_terminal)
    return as_json(ui.current.table, ui.current.rows)


async def _read(source: Source, model: Model, view: View, nursery: trio.Nursery) -> None:
    """Run the source until the view has data and rates are known, or it is clear that none come."""
    changed = trio.Event()

    def on_change() -> None:
        nonlocal changed
        changed.set()
        changed = trio.Event()

    model.changed = on_change
    source.interval_seconds = LOOK_SECONDS
    source.focus(view.section, view.section_key)
    with trio.move_on_after(WAIT_SECONDS):
        started = trio.Event()
        nursery.start_soon(_run, source, model, started)
        while not started.is_set() and not model.is_refused:
            await changed.wait()
        began = trio.current_time()
        while not model.is_refused and not (
            has_data(model, view)
            and has_rates(model, view)
            and trio.current_time() >= began + LOOK_SECONDS
        ):
            await changed.wait()


async def _run(source: Source, model: Model, started: trio.Event) -> None:
    """Run a source until cancelled; sets the event after its first reads."""
    async with trio.open_nursery() as nursery:
        await nursery.start(source.run, model)
        started.set()
        model.changed()


def has_data(model: Model, view: View) -> bool:
    """Return whether the model has a view's data or knows why the data is missing."""
    section = _section(model, view)
    if _has_unread(model, view):
        return section is not None and section.failure is not None
    if section is None:
        return bool(model.figures or model.alarms)
    return any(each is not None for each in (section.updated_at, section.missing, section.failure))


def has_rates(model: Model, view: View) -> bool:
    """Return whether the rates of a view are known, or none are expected."""
    if model.has_internals:
        return "requests" in model.figures
    # Beside brokers that report no internals, the overview has the rate of records.
    topics = model.topics
    is_expected = view.section == "overview" and topics.missing is None and topics.failure is None
    return not is_expected or "records" in model.figures


def _section(model: Model, view: View) -> Section[Any, Any] | None:
    section = getattr(model, view.section or "", None)
    if isinstance(section, Pipeline):
        section = section.minutes
    return section if isinstance(section, Section) else None


def _failure(model: Model, view: View) -> str | None:
    """Return why no data could be read for a view, or None if some data was read."""
    section = _section(model, view)
    if section is None:
        return None if model.figures else next(iter(model.alarms.values()), None)
    # The rows of an earlier read are worth printing, but not a part of the pipeline's minutes.
    is_whole = section.updated_at is not None and not _has_unread(model, view)
    return None if is_whole else section.failure


def _has_unread(model: Model, view: View) -> bool:
    """Return whether a view of the pipeline's results would show only a part of them."""
    return view.section == "pipeline" and bool(model.pipeline.unread)


def _why_no_data(source: Source, model: Model, view: View) -> str:
    pipeline = model.pipeline
    if _has_unread(model, view) and pipeline.minutes.failure is None:
        return (
            f"{source.name}: {pipeline.unread:,} records of {pipeline.topic} were not read within"
            f" {WAIT_SECONDS:g} s; the {len(pipeline.minutes)} minutes read so far are incomplete"
        )
    return _failure(model, view) or f"{source.name}: no response within {WAIT_SECONDS:g} s"


def whole_view(state: ViewState, model: Model, pen: Pen) -> list[Line]:
    """Return the lines of a view with all rows, without the header, tabs and hints."""
    mark = pen.glyphs.ellipsis
    return [exactly(line, pen.width, mark=mark) for line in _lines(state, model, pen)]


def _lines(state: ViewState, model: Model, pen: Pen) -> list[Line]:
    state.update_fully(model)
    view, table = state.view, state.table
    lines = [*view.summary(model, pen)]
    if table is None:
        return [*lines, *view.lines(model, pen)]
    if table.missing is not None:
        lines += [[pen.text(each, palette.NOTE)] for each in wrapped(table.missing, pen.width)]
        return lines
    columns = layout(table.columns, pen.width, state.rows, sort=state.sorted_by)
    lines.append(
        heading_line(columns, pen, state.sorted_by, descending=state.descending, rows=state.rows)
    )
    lines += [row_line(table, columns, row, pen, is_selected=False) for row in state.rows]
    return lines if state.rows else [*lines, *no_rows(state, pen)]


async def roll(
    source: Source,
    interval_seconds: float,
    count: int | None,
    form: str,
    out: IO[str],
    report: Callable[[str], None],
) -> None:
    """Write a line of figures at regular intervals, and report alarms as they change.

    Args:
        source: the source to show.
        interval_seconds: the time between two lines, in seconds.
        count: the number of lines; None to continue until cancelled.
        form: the format, one of :data:`ROLLING_FORMS`; JSON is one document per line.
        out: the output, which is flushed after each line.
        report: called with each new alarm.

    Raises:
        NoDataError: all lines are written, and nothing could be read.
        OSError: ``out`` cannot be written to.
    """
    model = Model()
    writer = _WRITERS[form](out)
    source.interval_seconds = interval_seconds
    source.focus("overview")  # beside other brokers than trionet's, it has the rate of records
    with raise_single_error():
        async with trio.open_nursery() as nursery:
            ready = trio.Event()
            model.changed = lambda: ready.set() if model.is_refused else None
            nursery.start_soon(_run, source, model, ready)
            with trio.move_on_after(WAIT_SECONDS):
                await ready.wait()
            written, has_figures = 0, False
            reported: list[str] = []
            while count is None or written < count:
                await trio.sleep(interval_seconds)  # rates need two looks
                writer.write(datetime.now().astimezone(), model)
                out.flush()
                written += 1
                has_figures = has_figures or bool(model.figures)
                for alarm in model.problems:
                    if alarm not in reported:
                        report(alarm)
                reported = model.problems
            nursery.cancel_scope.cancel(reason="all lines are written")
    if not has_figures:
        raise NoDataError(next(iter(reported), f"{source.name}: no response"))


class _TextLines:
    """Writes the reported figures as aligned columns."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._written = 0
        self._names: Sequence[str] = ()

    def write(self, now: datetime, model: Model) -> None:
        reported = model.figures.reported()
        names = [name for name in ROLLING if name in reported]
        if names != self._names or self._written % HEADINGS_EVERY == 0:
            self._names = names
            titles = (f"{title:>{width}}" for title, width in map(ROLLING.__getitem__, names))
            self._out.write(f"{'TIME':<8} {' '.join(titles)}\n")
        texts = (_cell(name, model.figures.get(name)) for name in names)
        self._out.write(f"{now:%H:%M:%S} {' '.join(texts)}\n")
        self._written += 1


def _cell(name: str, value: float | None) -> str:
    return f"{figure_lines.shown(name, value):>{ROLLING[name][1]}}"


class _JsonLines:
    """Writes all known figures as one JSON document per line."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def write(self, now: datetime, model: Model) -> None:
        document: dict[str, Any] = {"time": now.isoformat(timespec="milliseconds")}
        document.update(model.figures)
        if model.alarms:
            document["alarms"] = model.problems
        self._out.write(json.dumps(document, allow_nan=False) + "\n")


class _CsvLines:
    """Writes all figures as CSV, including unknown ones, so that the columns never change."""

    def __init__(self, out: IO[str]) -> None:
        self._writer = csv.writer(out, lineterminator="\n")
        self._writer.writerow(("time", *FIGURES))

    def write(self, now: datetime, model: Model) -> None:
        time = now.isoformat(timespec="milliseconds")
        self._writer.writerow((time, *(model.figures.get(name) for name in FIGURES)))


_WRITERS: Final[Mapping[str, type[_TextLines | _JsonLines | _CsvLines]]] = {
    "text": _TextLines,
    "json": _JsonLines,
    "csv": _CsvLines,
}
