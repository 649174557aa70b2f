"""Exports frames and tables as SVG, HTML, text, JSON and CSV; performs no I/O."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from rich.color import ColorSystem
from rich.segment import SegmentLines
from rich.terminal_theme import TerminalTheme

from ..._util._text import printable
from . import _themes as themes
from ._cells import Frame
from ._table import Table, Value
from ._themes import DARK, rgb

if TYPE_CHECKING:
    from rich.console import Console


def as_text(frame: Frame) -> str:
    """Return a frame as text, without trailing spaces."""
    lines = ("".join(segment.text for segment in line).rstrip() for line in frame.lines)
    return "\n".join(lines).rstrip("\n") + "\n"


def as_html(frame: Frame, theme: str = DARK) -> str:
    """Return a frame as a self-contained HTML page in a theme."""
    return _printed(frame, theme).export_html(theme=_terminal(theme), inline_styles=True)


def as_svg(
    frame: Frame,
    theme: str = DARK,
    title: str = "trionet dashboard",
    unique_id: str | None = None,
) -> str:
    """Return a frame as an SVG picture.

    Args:
        frame: the frame to show.
        theme: the name of the theme.
        title: the title above the frame.
        unique_id: the prefix of style names, so that a page can contain several pictures; by
            default a hash of the content.
    """
    console = _printed(frame, theme)
    return console.export_svg(title=title, theme=_terminal(theme), unique_id=unique_id)


def _terminal(name: str) -> TerminalTheme:
    """Return background and text colour; the other colours are never used."""
    look = themes.LOOKS[name]
    return TerminalTheme(rgb(look.background), rgb(look.foreground), [rgb(look.foreground)] * 8)


def _printed(frame: Frame, theme: str) -> Console:
    from rich.console import Console  # large, and only needed for exports

    console = Console(
        file=StringIO(),
        record=True,
        width=frame.width,
        height=len(frame.lines),
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
        legacy_windows=False,
    )
    shown = themes.theme(theme, ColorSystem.TRUECOLOR).applied(frame)
    console.print(SegmentLines(shown.lines, new_lines=True), end="", soft_wrap=True)
    return console


def records(table: Table[Any], rows: Iterable[Any]) -> Iterator[dict[str, Value]]:
    """Yield the rows of a table as raw values, keyed by column name."""
    values = {column.name: column.value for column in table.columns if column.value is not None}
    for row in rows:
        yield {name: value(row) for name, value in values.items()}


def as_json(table: Table[Any], rows: Iterable[Any]) -> str:
    """Return the rows of a table as a JSON array of objects."""
    return json.dumps(list(records(table, rows)), indent=2, allow_nan=False) + "\n"


def as_csv(table: Table[Any], rows: Iterable[Any], *, is_terminal: bool = False) -> str:
    """Return the rows of a table as CSV with a header, quoting values that look like formulas.

    Args:
        table: the table.
        rows: the rows to export.
        is_terminal: whether to escape what a terminal might interpret, as :func:`.printable` does.
            Programs get values unchanged.
    """
    out = StringIO()
    writer = csv.DictWriter(out, table.sortable(), lineterminator="\n")
    writer.writeheader()
    for record in records(table, rows):
        writer.writerow({name: _plain(value, is_terminal) for name, value in record.items()})
    return out.getvalue()


def _plain(value: Value, is_terminal: bool) -> Value:
    if not isinstance(value, str):
        return value
    # Client ids are arbitrary, such as `=HYPERLINK(...)`.
    mark = "'" if value[:1] in {"=", "+", "-", "@", "\t", "\r"} else ""
    return mark + (printable(value) if is_terminal else value)


#: The functions that export frames, given the name of a theme, and tables, keyed by file extension.
FRAME_FORMS: Final[Mapping[str, Callable[[Frame, str], str]]] = {
    "svg": as_svg,
    "html": as_html,
    "txt": lambda frame, _theme: as_text(frame),
}
TABLE_FORMS: Final[Mapping[str, Callable[[Table[Any], Sequence[Any]], str]]] = {
    "json": as_json,
    "csv": as_csv,
}
FORMS: Final = (*FRAME_FORMS, *TABLE_FORMS)
