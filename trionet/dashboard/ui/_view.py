"""The base class of views, which are pages of the dashboard, and what their keys do.

The views are in :mod:`trionet.dashboard.views`, which lists them. A view has a summary on top,
followed by either a :class:`Table`, which the dashboard sorts, filters and scrolls, or lines. A
view keeps no data and never waits. The dashboard sanitizes the text of cells, and a view must
create the text of lines with :meth:`Pen.text`.

A minimal view::

    class Widgets(View):
        name = "widgets"
        title = "Widgets"
        help = "All widgets of the factory."
        terms = {"SIZE": "the size in the warehouse, with its box"}
        empty = "No widgets yet: C makes one."

        def table(self, model: Model) -> Table[Widget]:
            return table_of(model.widgets, COLUMNS, "name")


    COLUMNS = (
        Column("name", "NAME", 20, grow=1),
        Column("size", "SIZE", 8, text=units.size, right=True),
    )

This module also has the effects that the user interface, which does no I/O, requests from the
application.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from ..drawing._cells import Line, Pen
from ..drawing._table import Table

if TYPE_CHECKING:
    from ..model._model import Model
    from ..sources._source import Source


@attrs.frozen
class Field:
    """A field of the form that precedes an action.

    Attributes:
        label: the label of the field, such as ``partitions``.
        default: returns the initial text, given the row.
        check: returns the error about a value; None if the value is valid.
        is_optional: whether the field may be empty.
        takes_rest: whether it takes all remaining words of a command, quoted as in a shell.
        preview: returns what is shown above the value while it is typed, such as its meaning with
            the defaults of what it leaves out; None for nothing.
    """

    label: str
    default: Callable[[Any], str] = lambda row: ""  # noqa: ARG005 - the same for every row
    check: Callable[[str], str | None] = lambda answer: None  # noqa: ARG005 - any is valid
    is_optional: bool = False
    takes_rest: bool = False
    preview: Callable[[str], str] | None = None


@attrs.frozen
class Action:
    """An operation of a view, available as a key and as a command.

    Attributes:
        key: a capital letter, so that no action starts by accident.
        name: the command, such as ``delete-topic``, whose arguments fill the fields in order.
        label: the label in the hints, a few words.
        run: runs the action and returns a sentence about the result, or raises TrionetError or
            OSError.
        fields: the fields to fill in first.
        question: returns the question to confirm with ``y``, given row and answers; None to run the
            action without confirmation.
        needs_row: whether the action applies to the selected row.
        refused: returns why the action is unavailable; None if it is available.
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
    """A link to another view, in addition to the view that ``enter`` opens.

    Attributes:
        key: a lower-case letter.
        name: the command.
        label: the label in the hints, a few words.
        to: creates the view, given the selected row.
        needs_row: whether the link applies to the selected row; if not, ``to`` gets None.
    """

    key: str
    name: str
    label: str
    to: Callable[[Any], View]
    needs_row: bool = False


class View:
    """A page of the dashboard.

    Attributes:
        name: the name, a single word, which is also the command that shows the view.
        key: the key that shows the view; empty for a view without a tab.
        short: an abbreviation of the name for the tab, where space is short; by default the name.
        title: the heading.
        help: the text for the help page, a few sentences.
        terms: what the titles of columns mean, for the help page, where they do not say it.
        empty: the text in place of rows while there are none, which says how to get some.
        opens: what ``enter`` opens, in a word or two, for the hints; empty if it opens nothing.
        section: the section of the model that sources read only while the view is shown; None for
            data that is always read.
        section_key: the item of the section, such as the name of a topic.
        actions: the available actions.
        links: the links to other views.
    """

    name: ClassVar[str]
    key: ClassVar[str] = ""
    short: ClassVar[str] = ""
    title: str
    help: ClassVar[str]
    terms: ClassVar[Mapping[str, str]] = {}
    empty: str = ""
    opens: ClassVar[str] = ""
    section: ClassVar[str | None] = None
    section_key: object = None
    actions: Sequence[Action] = ()
    links: Sequence[Link] = ()

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - none by default
        """Return the lines on top, which do not scroll; keep them to a third of the height."""
        return ()

    def table(self, model: Model) -> Table[Any] | None:  # noqa: ARG002 - none by default
        """Return the table, or None for a view of lines."""
        return None

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - none by default
        """Return the scrollable lines of a view without a table."""
        return ()

    def details(self, row: Any, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002
        """Return the lines about the selected row that are not fields of it, such as a chart.

        A screen with room to spare shows the values of all columns of the row, also of columns that
        the table has no room for, and below them these lines.

        Args:
            row: the selected row.
            model: the model.
            pen: the pen for drawing, with the size of the room for the lines.
        """
        return ()

    def is_waiting(self, model: Model) -> bool:  # noqa: ARG002 - never by default
        """Return whether a view without a table has no data to show yet."""
        return False

    def opened(self, row: Any) -> View | None:  # noqa: ARG002 - none by default
        """Return the view that ``enter`` opens for a row, or None if there is none."""
        return None


@attrs.frozen
class Quit:
    """A request to quit the dashboard."""


@attrs.frozen
class Redraw:
    """A request to redraw the whole screen."""


@attrs.frozen
class UseMouse:
    """A request to turn the terminal's mouse reports on or off."""

    on: bool


@attrs.frozen
class UseTheme:
    """A request to use a theme, or with None the one that fits the terminal's background."""

    name: str | None


@attrs.frozen
class Export:
    """A request to export the current view to a file, whose extension selects the format."""

    path: str


@attrs.frozen
class Act:
    """A request to run an action."""

    action: Action
    row: Any
    answers: Sequence[str]


Effect = Quit | Redraw | UseMouse | UseTheme | Export | Act
