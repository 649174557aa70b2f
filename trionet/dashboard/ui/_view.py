"""The base of all views: a page of the dashboard, made from the model. Pure.

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
                    Column("size", "SIZE", 8, lambda widget: widget.size, units.size, right=True),
                ),
                key=lambda widget: widget.name,
                **rows_of(model.widgets),
            )
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from ..drawing._pen import Line, Pen
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
        check: returns what is wrong with a value; None if it is valid.
        is_optional: whether the field may be empty.
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
        run: runs the action; returns a sentence that says what was done; raises TrionetError or
            OSError.
        fields: the form to fill in first.
        question: returns the question to confirm with ``y``, given row and answers; None runs the
            action without confirmation.
        needs_row: whether it applies to the selected row.
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
    """A link to another view, besides the one that ``enter`` opens.

    Attributes:
        key: a lower-case letter.
        name: the command.
        label: a few words for the hints.
        to: creates the view, given the selected row.
        needs_row: whether the link applies to that row; if not, ``to`` gets None.
    """

    key: str
    name: str
    label: str
    to: Callable[[Any], View]
    needs_row: bool = False


class View:
    """A page of the dashboard; subclasses override what they need.

    Attributes:
        name: one word; also the command that shows the view.
        key: the key that shows the view; empty for a view that only other views open.
        title: the heading.
        help: a few sentences for the help page.
        section: the section of the model that the source has to read only while the view is shown;
            None for data that is always read.
        section_key: the item of the section, such as a topic's name.
        actions: the actions that the view offers.
        links: the views that the view leads to.
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
        """Return the lines on top, which do not scroll; at most a third of the height."""
        return ()

    def table(self, model: Model) -> Table[Any] | None:  # noqa: ARG002 - none by default
        """Return the table, or None for a view of lines."""
        return None

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - none by default
        """Return the lines of a view without a table, which scroll."""
        return ()

    def is_waiting(self, model: Model) -> bool:  # noqa: ARG002 - never by default
        """Whether a view without a table has no data to show yet."""
        return False

    def opened(self, row: Any) -> View | None:  # noqa: ARG002 - none by default
        """Return the view that ``enter`` opens for a row, or None if there is none."""
        return None
