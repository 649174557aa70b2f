"""The base of all views: a page of the dashboard, made from the model; pure.

A view is one module in :mod:`trionet.dashboard.views`, listed there. It has a summary on top, then
either a :class:`Table`, which the dashboard sorts, filters and scrolls, or lines. It keeps no data,
waits for nothing and escapes nothing: the text of cells is sanitized where it is drawn, and text
that a view puts into lines goes through :meth:`Pen.text`.

A minimal view::

    class Widgets(View):
        name = "widgets"
        title = "Widgets"
        help = "All widgets of the factory."

        def table(self, model: Model) -> Table[Widget]:
            return Table(
                columns=(
                    Column("name", "NAME", 20, lambda widget: widget.name, grow=1),
                    Column("size", "SIZE", 8, lambda widget: widget.size, amounts.size, right=True),
                ),
                key=lambda widget: widget.name,
                **rows_of(model.widgets),
            )
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypedDict, TypeVar

import attrs
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing._cells import Glyphs, fit, fit_sanitized, sanitized

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._section import Section
    from ..sources import Source

R = TypeVar("R")

Line = list[Segment]
"""A line of the screen; it may be shorter than the screen is wide."""

Value = str | int | float | bool | None
"""What a cell is sorted by and exported as."""


@attrs.frozen
class Pen:
    """How to draw: in how many cells, with which characters.

    Attributes:
        width: of the screen, in cells.
        height: how many lines the view has; a view of lines may return more, and scrolls.
        glyphs: the characters to draw with.
    """

    width: int
    height: int
    glyphs: Glyphs

    def text(self, text: object, style: Style = palette.PLAIN) -> Segment:
        """Any text, sanitized."""
        return Segment(sanitized(str(text), self.glyphs), style)

    def cell(
        self, text: object, width: int, style: Style = palette.PLAIN, *, right: bool = False
    ) -> Segment:
        """Any text, sanitized, in exactly ``width`` cells."""
        return Segment(fit_sanitized(str(text), width, right=right, glyphs=self.glyphs), style)

    def rule(self, title: str) -> Line:
        """A heading, sanitized, with a rule to the right end of the screen."""
        shown = sanitized(title, self.glyphs)
        cells = cell_len(shown)
        if cells > self.width - 4:
            cells = max(0, self.width - 4)
            shown = fit(shown, cells, glyphs=self.glyphs)
        rest = max(0, self.width - cells - 4)
        return [
            Segment(self.glyphs.rule * 2, palette.DIM),
            Segment(f" {shown} ", palette.TITLE),
            Segment(self.glyphs.rule * rest, palette.DIM),
        ]


@attrs.frozen
class Column(Generic[R]):
    """A column of a table.

    Attributes:
        name: its name in JSON, CSV and ``:sort``, such as ``idle_seconds``.
        title: its heading, no wider than the column.
        width: its minimum width in cells; 0 for a column that is only exported and sorted by.
        value: what it is sorted by and exported as; None sorts last. A column without it can
            neither be sorted by nor exported.
        text: formats a value; ``str`` by default.
        right: whether it is right-aligned, as numbers are.
        priority: columns with the highest number are dropped first where space is short, from the
            right; those with 0 are never dropped.
        grow: its share of spare width, relative to the other columns.
        style: the style of a cell; None for plain.
        draw: returns segments in place of text, no wider than the given width.
        is_searched: whether a filter searches it; by default if its values are text and it is
            shown.
    """

    name: str
    title: str
    width: int
    value: Callable[[R], Value] | None = None
    text: Callable[[Any], str] = str
    right: bool = False
    priority: int = 0
    grow: int = 0
    style: Callable[[R], Style | None] | None = None
    draw: Callable[[R, int, Pen], Line] | None = None
    is_searched: bool | None = None

    def shown(self, row: R) -> str:
        """The text of a cell; empty if its value is None."""
        value = None if self.value is None else self.value(row)
        return "" if value is None else self.text(value)


@attrs.frozen
class Table(Generic[R]):
    """Rows to be sorted, filtered and scrolled; only those on the screen are drawn.

    Attributes:
        columns: from left to right.
        rows: in the order of the model.
        key: identifies a row across updates, so that the cursor can follow it.
        missing: why there are no rows, as a sentence.
        sort: the default sort column; None keeps the order.
        descending: whether the default order starts with the largest.
        total: how many rows there are, if the model does not have all of them.
        version: changes with the rows, which are not sorted again before; None sorts every time.
        as_of: when the oldest values in the rows were read, in seconds of the loop's clock; None if
            rows do not age.
        is_failing: whether the last attempt to read the rows failed.
        style: the style of a row.
    """

    columns: Sequence[Column[R]]
    rows: Collection[R]
    key: Callable[[R], Hashable]
    missing: str | None = None
    sort: str | None = None
    descending: bool = False
    total: int | None = None
    version: Hashable = None
    as_of: float | None = None
    is_failing: bool = False
    style: Callable[[R], Style | None] | None = None

    def column(self, name: str) -> Column[R] | None:
        """The column with this name; None if there is none."""
        return next((column for column in self.columns if column.name == name), None)

    def sortable(self) -> list[str]:
        """The names of the columns that the table can be sorted by."""
        return [column.name for column in self.columns if column.value is not None]


#: Shown for a list that has not been read yet.
UNREAD: Final = "Loading."


class TableRows(TypedDict, Generic[R]):
    """The arguments of a :class:`Table` that come from a section of the model."""

    rows: Collection[R]
    missing: str | None
    total: int | None
    version: Hashable
    as_of: float | None
    is_failing: bool


def rows_of(section: Section[Any, R]) -> TableRows[R]:
    """The rows of a section for a :class:`Table`, or why there are none."""
    unread = None if section.updated_at is not None else section.failure or UNREAD
    return {
        "rows": section.values(),
        "missing": section.missing or unread,
        "total": section.total,
        # A section may be replaced by another, whose versions start again.
        "version": (id(section), section.version),
        "as_of": section.updated_at if section.as_of is None else section.as_of,
        "is_failing": section.failure is not None,
    }


def without_age(rows: TableRows[R]) -> TableRows[R]:
    """The same rows without an age unless reading fails: for rows that arrive only now and then."""
    found = rows.copy()
    if not found["is_failing"]:
        found["as_of"] = None
    return found


@attrs.frozen
class Field:
    """A field of the form that precedes an action.

    Attributes:
        label: such as ``partitions``.
        default: its initial text, given the row.
        check: returns what is wrong with an answer; None if it is valid.
        is_optional: whether it may be empty.
    """

    label: str
    default: Callable[[Any], str] = lambda row: ""  # noqa: ARG005 - the same for every row
    check: Callable[[str], str | None] = lambda answer: None  # noqa: ARG005 - any is valid
    is_optional: bool = False


@attrs.frozen
class Action:
    """An operation that a view offers, as a key and as a command.

    Attributes:
        key: a capital letter, so that no action starts by accident.
        name: the command, such as ``delete-topic``; its arguments fill the fields, in order.
        label: a few words for the hints.
        run: runs it and returns a sentence that says what was done; raises TrionetError or OSError.
        fields: the form to fill in first.
        question: what to confirm with ``y``, given row and answers; None runs it at once.
        needs_row: whether it applies to the selected row.
        refused: why it is unavailable; None if it is available.
    """

    key: str
    name: str
    label: str
    run: Callable[[Source, Any, Sequence[str]], Awaitable[str]]
    fields: Sequence[Field] = ()
    question: Callable[[Any, Sequence[str]], str] | None = None
    needs_row: bool = True
    refused: Callable[[Model], str | None] = lambda model: None  # noqa: ARG005 - always available


@attrs.frozen
class Link:
    """Another view that a view leads to, besides what ``enter`` opens.

    Attributes:
        key: a lower-case letter.
        name: the command.
        label: a few words for the hints.
        to: makes the view, given the selected row.
        needs_row: whether it applies to that row; if not, it gets None.
    """

    key: str
    name: str
    label: str
    to: Callable[[Any], View]
    needs_row: bool = False


class View:
    """A page of the dashboard; subclasses override what they need.

    Attributes:
        name: one word; also its command.
        key: the key that shows it; empty for a view that only other views open.
        title: its heading.
        help: a few sentences for the help page.
        section: the section of the model that the source has to read while the view is shown, if
            it is not read anyway.
        section_key: the item of the section, such as a topic's name.
        actions: what the user can do.
        links: the views it leads to.
    """

    name: ClassVar[str]
    key: ClassVar[str] = ""
    title: str
    help: ClassVar[str]
    section: ClassVar[str | None] = None
    section_key: object = None
    actions: Sequence[Action] = ()
    links: Sequence[Link] = ()

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - none by default
        """Lines on top, which do not scroll; at most a third of the height for small screens."""
        return ()

    def table(self, model: Model) -> Table[Any] | None:  # noqa: ARG002 - none by default
        """The table; None for a view of lines."""
        return None

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - none by default
        """The lines of a view without a table, which scroll."""
        return ()

    def is_waiting(self, model: Model) -> bool:  # noqa: ARG002 - never by default
        """Whether a view without a table has no data to show yet."""
        return False

    def opened(self, row: Any) -> View | None:  # noqa: ARG002 - none by default
        """The view that ``enter`` opens for a row; None if there is none."""
        return None
