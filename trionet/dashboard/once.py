"""The dashboard without a screen: one look at a view, or a line of numbers every few seconds."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

import attrs
import trio

from .._util.single_error import raise_single_error
from ..errors import TrionetError
from . import figure_lines, palette
from .cells import ASCII, UNICODE, Glyphs
from .export import FRAME_FORMS, TABLE_FORMS, as_text
from .figures import FIGURES
from .frame import Frame
from .lines import exactly, heading_line, layout, row_line
from .model import Model
from .pipeline import Pipeline
from .place import ViewState
from .screen import draw
from .section import Section
from .ui import Ui
from .view import Line, Pen, View
from .views import all_views
from .wrapping import wrapped

if TYPE_CHECKING:
    from .sources import Source

#: Looks are this far apart: rates need two.
LOOK_SECONDS: Final = 0.5
#: How long the source may take until what is asked for is shown as far as it is known.
WAIT_SECONDS: Final = 15.0
#: After so many lines of numbers the headings come again.
HEADINGS_EVERY: Final = 20

#: The figures of a line, by heading and width.
ROLLING: Final[Mapping[str, tuple[str, int]]] = {
    "requests": ("REQUESTS", 10),
    "errors": ("ERRORS", 8),
    "bytes_in": ("IN", 11),
    "bytes_out": ("OUT", 11),
    "connections": ("CONNS", 7),
    "in_flight": ("OUT NOW", 7),
    "request_queue": ("QUEUE", 6),
    "loop_idle": ("IDLE", 6),
    "loop_lag_p99": ("LAG P99", 8),
    "topics": ("TOPICS", 7),
    "partitions": ("PARTS", 7),
    "under_replicated": ("UNDER", 6),
    "groups": ("GROUPS", 7),
    "lag": ("GROUP LAG", 9),
}

#: What one look at a view can be written as.
ONCE_FORMS: Final = ("text", *(form for form in FRAME_FORMS if form != "txt"), *TABLE_FORMS)
#: What lines of numbers can be written as.
ROLLING_FORMS: Final = ("text", "json", "csv")


class NoDataError(TrionetError):
    """What is to be shown could not be read, or nobody tells it."""


class NotATableError(Exception):
    """A view of lines was asked for as a table."""


@attrs.frozen
class OnceOptions:
    """What one look is to show.

    Attributes:
        view: the name of the view.
        form: one of :data:`ONCE_FORMS`.
        width: in cells.
        height: of a picture, in lines; a text is as long as it is.
        ascii: whether nothing but ASCII is shown.
        filter: words that rows must have, as behind ``/``.
    """

    view: str = "overview"
    form: str = "text"
    width: int = 120
    height: int = 40
    ascii: bool = False
    filter: str = ""

    @property
    def glyphs(self) -> Glyphs:
        """The characters that may be shown."""
        return ASCII if self.ascii else UNICODE


async def render_once(source: Source, look: OnceOptions) -> str:
    """Look twice at a source, shortly after one another, and show what there is.

    Args:
        source: what is looked at.
        look: what to show.

    Raises:
        NotATableError: JSON or CSV is asked for of a view that has no table.
        NoDataError: nothing of it could be read; or JSON or CSV is asked for of what the
            source does not tell.
    """
    ui = Ui(all_views(), look.view)
    model = Model()
    with raise_single_error():
        async with trio.open_nursery() as nursery:
            await _looked(source, model, ui.current.view, nursery)
            nursery.cancel_scope.cancel(reason="it was looked at")
    if not has_data(model, ui.current.view) or _failure(model, ui.current.view) is not None:
        raise NoDataError(_why_nothing(source, model, ui.current.view))
    ui.current.filter = look.filter
    ui.current.update_fully(model)
    if look.form in FRAME_FORMS and look.form != "txt":
        return FRAME_FORMS[look.form](draw(ui, model, look.width, look.height, look.glyphs))
    if look.form == "text":
        pen = Pen(look.width, look.height, look.glyphs)
        return as_text(Frame(look.width, whole_view(ui.current, model, pen)))
    if ui.current.table is None:
        raise NotATableError(f"{look.view}: it is no table; its numbers are lines of --interval")
    if ui.current.table.missing is not None:
        raise NoDataError(ui.current.table.missing)
    return TABLE_FORMS[look.form](ui.current.table, ui.current.rows)


async def _looked(source: Source, model: Model, view: View, nursery: trio.Nursery) -> None:
    """Return when the source has told what the view shows, and numbers twice."""
    changed = trio.Event()

    def news() -> None:
        nonlocal changed
        changed.set()
        changed = trio.Event()

    source.interval_seconds = LOOK_SECONDS
    source.focus(view.section, view.section_key)
    with trio.move_on_after(WAIT_SECONDS):
        await nursery.start(source.run, model, news)
        began = trio.current_time()
        while not (
            has_data(model, view)
            and has_rates(model)
            and trio.current_time() >= began + LOOK_SECONDS
        ):
            await changed.wait()


def has_data(model: Model, view: View) -> bool:
    """Whether the model has what the view shows, or knows why it has not."""
    section = _section(model, view)
    if section is None:
        return bool(model.figures or model.alarms)
    return any(each is not None for each in (section.updated_at, section.missing, section.failure))


def has_rates(model: Model) -> bool:
    """Whether a broker that tells of its inside was looked at twice."""
    return model.apis.updated_at is None or "requests" in model.figures


def _section(model: Model, view: View) -> Section[Any, Any] | None:
    section = getattr(model, view.section or "", None)
    if isinstance(section, Pipeline):
        section = section.minutes
    return section if isinstance(section, Section) else None


def _failure(model: Model, view: View) -> str | None:
    """Why nothing at all could be read of what the view shows."""
    section = _section(model, view)
    if section is None:
        return None if model.figures else next(iter(model.alarms.values()), None)
    return section.failure if section.updated_at is None else None


def _why_nothing(source: Source, model: Model, view: View) -> str:
    return _failure(model, view) or f"{source.name}: no answer within {WAIT_SECONDS:g} s"


def whole_view(place: ViewState, model: Model, pen: Pen) -> list[Line]:
    """A view with all its rows, without what is around it."""
    mark = pen.glyphs.ellipsis
    return [exactly(line, pen.width, mark=mark) for line in _lines(place, model, pen)]


def _lines(place: ViewState, model: Model, pen: Pen) -> list[Line]:
    place.update_fully(model)
    view, table = place.view, place.table
    lines = [*view.summary(model, pen)]
    if table is None:
        return [*lines, *view.lines(model, pen)]
    if table.missing is not None:
        lines += [[pen.text(each, palette.NOTE)] for each in wrapped(table.missing, pen.width)]
        return lines
    places = layout(table.columns, pen.width)
    lines.append(heading_line(places, pen, place.sorted_by, descending=place.descending))
    lines += [row_line(table, places, row, pen, is_selected=False) for row in place.rows]
    return lines


async def roll(
    source: Source, interval_seconds: float, count: int | None, form: str, out: TextIO
) -> None:
    """Write a line of numbers every few seconds.

    Args:
        source: what is looked at.
        interval_seconds: between two lines.
        count: how many lines; None goes on until cancelled.
        form: one of :data:`ROLLING_FORMS`; of JSON, a document a line.
        out: where to; flushed after each line.

    Raises:
        OSError: it cannot be written.
    """
    model = Model()
    writer = _WRITERS[form](out)
    source.interval_seconds = interval_seconds
    source.focus(None)
    with raise_single_error():
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(WAIT_SECONDS):
                await nursery.start(source.run, model, lambda: None)
            written = 0
            while count is None or written < count:
                await trio.sleep(interval_seconds)  # rates need two looks
                writer.write(datetime.now().astimezone(), model)
                out.flush()
                written += 1
            nursery.cancel_scope.cancel(reason="all lines are written")


class _TextLines:
    """Columns for people: only those that the source tells."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._written = 0
        self._names: Sequence[str] = ()

    def write(self, now: datetime, model: Model) -> None:
        told = model.figures.reported()
        names = [name for name in ROLLING if name in told]
        if names != self._names or self._written % HEADINGS_EVERY == 0:
            self._names = names
            titles = (f"{title:>{width}}" for title, width in map(ROLLING.__getitem__, names))
            self._out.write(f"{'TIME':<8} {' '.join(titles)}\n")
        texts = (_cell(name, model.figures.get(name)) for name in names)
        self._out.write(f"{now:%H:%M:%S} {' '.join(texts)}\n")
        for alarm in model.alarms.values():
            self._out.write(f"! {' '.join(wrapped(alarm, 10_000))}\n")
        self._written += 1


def _cell(name: str, value: float | None) -> str:
    return f"{figure_lines.shown(name, value):>{ROLLING[name][1]}}"


class _JsonLines:
    """All figures that the source tells, by their names."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, now: datetime, model: Model) -> None:
        document: dict[str, Any] = {"time": now.isoformat(timespec="milliseconds")}
        document.update(model.figures)
        if model.alarms:
            document["alarms"] = list(model.alarms.values())
        self._out.write(json.dumps(document, allow_nan=False) + "\n")


class _CsvLines:
    """All figures there are, told or not, so that the columns stay."""

    def __init__(self, out: TextIO) -> None:
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
