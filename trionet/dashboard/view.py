"""What a view is: a page of the dashboard, made of what the model knows; pure.

A view is one file in :mod:`trionet.dashboard.views`, listed there. It has lines on top, then either
a :class:`Table`, which the dashboard sorts, filters and scrolls, or more lines. It keeps nothing of
what it shows, waits for nothing, and escapes nothing: texts of cells are made harmless where they
are drawn, and what a view puts into lines itself goes through :meth:`Pen.text`.

A new view is this much::

    class Widgets(View):
        name = "widgets"
        title = "Widgets"
        help = "What they are."

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

from . import palette
from .cells import Glyphs, fit, fit_sanitized, sanitized

if TYPE_CHECKING:
    from .model import Model
    from .section import Section
    from .sources import Source

R = TypeVar("R")

Line = list[Segment]
"""A line of the screen; nobody has to fill it up."""

Value = str | int | float | bool | None
"""What a cell is sorted by and exported as."""


@attrs.frozen
class Pen:
    """How to draw: on how many cells, with which characters.

    Attributes:
        width: of the screen, in cells.
        height: how many lines there are for the view; it may give more if it has no table.
        glyphs: which characters there are.
    """

    width: int
    height: int
    glyphs: Glyphs

    def text(self, text: object, style: Style = palette.PLAIN) -> Segment:
        """Any text, made harmless."""
        return Segment(sanitized(str(text), self.glyphs), style)

    def cell(
        self, text: object, width: int, style: Style = palette.PLAIN, *, right: bool = False
    ) -> Segment:
        """Any text, made sanitized, in exactly so many cells."""
        return Segment(fit_sanitized(str(text), width, right=right, glyphs=self.glyphs), style)

    def rule(self, title: str) -> Line:
        """A heading, made sanitized, with a line to the right end of the screen."""
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
        name: what JSON, CSV and ``:sort`` call it: ``idle_seconds``.
        title: its heading, no wider than the column.
        width: in cells, the least it has; 0 for one that is only exported, and sorted by.
        value: what it is sorted by and exported as, None comes last; without it, it is neither.
        text: how a value is shown; by default as it is.
        right: whether it stands at the right end, as numbers do.
        priority: where there is no room, columns of the highest number are left out first, and of
            equal ones the rightmost; those of 0 never are.
        grow: its share of the room that is left over, next to that of the other columns.
        style: how a row's cell looks; None for plain.
        draw: segments in place of text, of at most the width that it is given.
        is_searched: whether a filter looks at it; by default if its values are texts, and it is
            not only exported.
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
        """The text of a row's cell; empty where there is no value."""
        value = None if self.value is None else self.value(row)
        return "" if value is None else self.text(value)


@attrs.frozen
class Table(Generic[R]):
    """Rows to be sorted, filtered and scrolled; only those on the screen are ever drawn.

    Attributes:
        columns: from the left to the right.
        rows: as the model has them, in its order.
        key: what tells a row from others, also in later snapshots: the cursor stays with it.
        missing: why there are no rows, in a sentence.
        sort: the column that it is sorted by at first; None keeps the order.
        descending: whether that begins with the largest.
        total: how many rows there are where the model does not have all of them.
        version: changes when the rows do: they are not sorted anew before; None for always.
        as_of: when the oldest values in the rows were read, in seconds of the loop's clock; None
            where rows do not grow old.
        is_failing: whether newer ones could not be read.
        style: how a row looks.
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
        """The column of this name."""
        return next((column for column in self.columns if column.name == name), None)

    def sortable(self) -> list[str]:
        """The names of the columns that it can be sorted by."""
        return [column.name for column in self.columns if column.value is not None]


#: What is said of a list before the source has told it.
UNREAD: Final = "It is being read."


class TableRows(TypedDict, Generic[R]):
    """What a section of the model gives to a table."""

    rows: Collection[R]
    missing: str | None
    total: int | None
    version: Hashable
    as_of: float | None
    is_failing: bool


def rows_of(section: Section[Any, R]) -> TableRows[R]:
    """The rows of a section, or why there are none."""
    unread = None if section.updated_at is not None else section.failure or UNREAD
    return {
        "rows": section.values(),
        "missing": section.missing or unread,
        "total": section.total,
        # The model may have another section in the place of one.
        "version": (id(section), section.version),
        "as_of": section.updated_at if section.as_of is None else section.as_of,
        "is_failing": section.failure is not None,
    }


def without_age(told: TableRows[R]) -> TableRows[R]:
    """The same of rows that are new only now and then: they are old only if reading fails."""
    found = told.copy()
    if not found["is_failing"]:
        found["as_of"] = None
    return found


@attrs.frozen
class Field:
    """What is asked for before an action.

    Attributes:
        label: such as ``partitions``.
        default: what stands there at first, given the row.
        check: what is wrong with an answer, in a sentence; None if nothing is.
        is_optional: whether it may stay empty.
    """

    label: str
    default: Callable[[Any], str] = lambda row: ""  # noqa: ARG005 - a row that does not matter
    check: Callable[[str], str | None] = lambda answer: None  # noqa: ARG005 - all are right
    is_optional: bool = False


@attrs.frozen
class Action:
    """Something that a view can do, by a key or as a command.

    Attributes:
        key: a capital letter, so that nothing happens by a slip.
        name: the command, such as ``delete-topic``; its words are answers to the fields, in order.
        label: what it does, in a few words.
        run: does it, and says in a sentence what was done; raises TrionetError or OSError.
        fields: what is asked for first.
        question: what is to be confirmed by ``y``, given row and answers; None asks nothing.
        needs_row: whether it is about the row below the cursor.
        refused: why it cannot be done here, in a sentence; None if it can.
    """

    key: str
    name: str
    label: str
    run: Callable[[Source, Any, Sequence[str]], Awaitable[str]]
    fields: Sequence[Field] = ()
    question: Callable[[Any, Sequence[str]], str] | None = None
    needs_row: bool = True
    refused: Callable[[Model], str | None] = lambda model: None  # noqa: ARG005 - it always can


@attrs.frozen
class Link:
    """Another view that one leads to, beside what ``enter`` shows.

    Attributes:
        key: a small letter that nothing else has.
        name: the command.
        label: what is there, in a few words.
        to: makes the view, given the row below the cursor.
        needs_row: whether it is about that row; without, it is given None.
    """

    key: str
    name: str
    label: str
    to: Callable[[Any], View]
    needs_row: bool = False


class View:
    """A page of the dashboard; subclasses override what they have.

    Attributes:
        name: one word; also its command.
        key: the key that shows it; empty for one that others open.
        title: its heading.
        help: what it shows, in a few sentences.
        section: what the source must know is looked at, if it is not always told.
        section_key: which of it, such as a topic's name.
        actions: what it can do.
        links: where it leads to.
    """

    name: ClassVar[str]
    key: ClassVar[str] = ""
    title: str
    help: ClassVar[str]
    section: ClassVar[str | None] = None
    section_key: object = None
    actions: Sequence[Action] = ()
    links: Sequence[Link] = ()

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - by default none
        """Lines on top, which do not scroll; at most a third of the height for small screens."""
        return ()

    def table(self, model: Model) -> Table[Any] | None:  # noqa: ARG002 - by default none
        """The table, or None for a view of lines."""
        return None

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - by default none
        """The lines of a view without a table; they scroll."""
        return ()

    def is_waiting(self, model: Model) -> bool:  # noqa: ARG002 - by default there is something
        """Whether a view without a table has nothing to show yet."""
        return False

    def opened(self, row: Any) -> View | None:  # noqa: ARG002 - by default nothing is inside
        """What ``enter`` shows of a row."""
        return None
