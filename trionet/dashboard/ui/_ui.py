"""The state of the user interface: views, the text being typed, the action to confirm.

The problem: one keyboard must browse tables, edit a filter or a command line, fill in the fields of
an action and confirm the action. The same operation is often a key, a command and a click. None of
these may do I/O, because a slow broker would freeze the keyboard.

The choice: one state object and an explicit :class:`Mode`. :class:`.KeyHandler` changes the state
on an event, and :class:`.Commands` on a command line. If an operation needs I/O (quitting, an
export, an action on the broker), they return an effect for the application. Each view with a tab
has a stack of :class:`.ViewState`, so that switching tabs keeps the cursor, the sort order and the
filter. Tests press keys and read the state without a terminal.

Rejected: a widget toolkit (focus and layout for one table and one line of text, and tens of
milliseconds at start) and a task per dialog (every key that leaves a dialog would need to cancel
the task). Reconsider if two tables ever share the screen, because there is one cursor.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import attrs

from ._view import Act, Action, Effect, Link, UseMouse, View
from ._view_state import ViewState

if TYPE_CHECKING:
    from ..model._model import Model


#: The maximum length of a line, longer than any name in Kafka.
CHARS_MAX: Final = 1000
#: The Alt combinations with a meaning. Others are treated as Escape followed by a key.
ALT_KEYS: Final = frozenset({"alt-backspace"})
#: The maximum number of earlier lines kept.
HISTORY_MAX: Final = 100


class LineEditor:
    """A line of text with a cursor.

    Args:
        text: the initial text.
        history: the earlier lines that the arrow keys recall, the newest last.
    """

    def __init__(self, text: str = "", history: Sequence[str] = ()) -> None:
        self.text = text
        self.cursor = len(text)
        self._lines = [*history[-HISTORY_MAX:], text]
        self._line = len(self._lines) - 1

    def insert(self, text: str) -> None:
        """Insert the first line of a text at the cursor."""
        line = next(iter(text.splitlines()), "")[: CHARS_MAX - len(self.text)]
        self.text = self.text[: self.cursor] + line + self.text[self.cursor :]
        self.cursor += len(line)

    def press(self, key: str) -> bool:
        """Handle a key, and return whether the key has a meaning in the editor."""
        if len(key) == 1:
            if key.isprintable():
                self.insert(key)
            return key.isprintable()
        before, after = self.text[: self.cursor], self.text[self.cursor :]
        match key:
            case "backspace":
                self._set(before[:-1], after)
            case "delete" | "ctrl-d":
                self._set(before, after[1:])
            case "ctrl-u":
                self._set("", after)
            case "ctrl-k":
                self._set(before, "")
            case "ctrl-w" | "alt-backspace":
                self._set(before.rstrip().rpartition(" ")[0], after)
                if self.cursor:
                    self.insert(" ")
            case "left" | "ctrl-b":
                self.cursor = max(0, self.cursor - 1)
            case "right" | "ctrl-f":
                self.cursor = min(len(self.text), self.cursor + 1)
            case "home" | "ctrl-a":
                self.cursor = 0
            case "end" | "ctrl-e":
                self.cursor = len(self.text)
            case "up" | "ctrl-p":
                self._recall(-1)
            case "down" | "ctrl-n":
                self._recall(1)
            case _:
                return False
        return True

    def replace(self, text: str) -> None:
        """Replace the line with a text."""
        self._set(text, "")

    def _set(self, before: str, after: str) -> None:
        self.text, self.cursor = before + after, len(before)

    def _recall(self, step: int) -> None:
        line = self._line + step
        if 0 <= line < len(self._lines):
            self._lines[self._line] = self.text
            self._line = line
            self.replace(self._lines[line])


#: The refresh intervals in seconds for ``+`` and ``-``, which also define the allowed range.
REFRESH_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
#: The maximum number of views on a stack.
DEPTH_MAX: Final = 16


class Mode(Enum):
    """The current meaning of keys."""

    BROWSE = auto()
    FILTER = auto()
    COMMAND = auto()
    ASK = auto()
    CONFIRM = auto()
    HELP = auto()
    MENU = auto()


@attrs.frozen
class Message:
    """A line at the bottom of the screen, shown until the next key."""

    text: str
    is_alarm: bool = False


@attrs.define
class Prompt:
    """An action that waits for the values of its fields or for confirmation."""

    action: Action
    row: Any
    answers: list[str]

    @property
    def question(self) -> str:
        """The question with which the user confirms the action."""
        assert self.action.question is not None
        return self.action.question(self.row, self.answers)


@attrs.define
class Hits:
    """The positions of elements on the screen, for the mouse. Ends are exclusive.

    Attributes:
        keys: the line, begin and end of each element that means a key, and the key.
        headings: the begin and end of each column of the table, and its name.
        heading_row: the line of the columns' titles.
        body_row: the line of the first row.
        body_end: the column at which the rows end.
    """

    keys: list[tuple[int, int, int, str]] = attrs.Factory(list)
    headings: list[tuple[int, int, str]] = attrs.Factory(list)
    heading_row: int = -1
    body_row: int = 0
    body_end: int = 0

    def add_key(self, row: int, begin: int, end: int, key: str) -> None:
        """Let a click on these cells of a line mean a key."""
        self.keys.append((row, begin, end, key))

    def key_at(self, column: int, row: int) -> str | None:
        """Return the key that a click means, or None if it means none."""
        return next(
            (key for line, begin, end, key in self.keys if line == row and begin <= column < end),
            None,
        )


class Ui:
    """The state of the user interface.

    Args:
        views: the views with a tab, in the order of the tabs.
        first: the name of the initial view: of one with a tab, or of a link that needs no row.
        refresh_seconds: the interval between reads in seconds.

    Attributes:
        mode: the current meaning of keys.
        editor: the line being typed.
        is_paused: whether the screen is frozen.
        uses_mouse: whether the terminal reports clicks.
        message: the message at the bottom; None to show the hints.
        prompt: the action being filled in or confirmed; None if there is none.
        help_top: the first line of the help on the screen.
        menu_cursor: the index of the chosen view in the list of all views.
        shows_details: whether the details of the selected row are shown where there is room.
        hits: the positions of elements on the screen.
    """

    def __init__(self, views: Sequence[View], first: str, refresh_seconds: float = 1.0) -> None:
        self.views = views
        self.mode = Mode.BROWSE
        self.editor = LineEditor()
        self.is_paused = False
        self.uses_mouse = False
        self.refresh_seconds = refresh_seconds
        self.message: Message | None = None
        self.prompt: Prompt | None = None
        self.help_top = 0
        self.menu_cursor = 0
        self.shows_details = True
        self.hits = Hits()
        self._stacks = {view.name: [ViewState(view)] for view in views}
        self._root = self._before = self._opened_for(first)

    def _opened_for(self, name: str) -> str:
        """Open the view that a dashboard begins with. Returns the view with a tab below it."""
        if name in self._stacks:
            return name
        root, link = next(
            (view.name, link)
            for view in self.views
            for link in view.links
            if link.name == name and not link.needs_row
        )
        self._stacks[root].append(ViewState(link.to(None)))
        return root

    @property
    def trail(self) -> list[ViewState]:
        """The stack of views, from the view with a tab to the view on the screen."""
        return self._stacks[self._root]

    @property
    def current(self) -> ViewState:
        """The state of the view on the screen."""
        return self.trail[-1]

    @property
    def root(self) -> str:
        """The name of the view with a tab at the bottom of the stack."""
        return self._root

    def show_message(self, text: str, *, is_alarm: bool = False) -> None:
        """Show a message at the bottom until the next key."""
        self.message = Message(text, is_alarm)

    # Moving between views.

    def show(self, name: str) -> None:
        """Show the stack of a view with a tab, or return to the view if its stack is shown."""
        if name == self._root:
            del self.trail[1:]
            return
        self._before, self._root = self._root, name

    def show_next(self, step: int) -> None:
        """Show the next (1) or the previous (-1) view with a tab."""
        names = [view.name for view in self.views]
        self.show(names[(names.index(self._root) + step) % len(names)])

    def show_before(self) -> None:
        """Show the previously shown view with a tab."""
        self.show(self._before)

    def open(self) -> None:
        """Open the view of the selected row."""
        row = self.current.selected
        view = None if row is None else self.current.view.opened(row)
        if view is not None:
            self._push(view)

    def follow(self, link: Link) -> None:
        """Open the view that a link leads to."""
        row = self.current.selected
        if row is None and link.needs_row:
            self.show_message(f"{link.label}: select a row first", is_alarm=True)
        else:
            self._push(link.to(row if link.needs_row else None))

    def _push(self, view: View) -> None:
        if len(self.trail) < DEPTH_MAX:
            self.trail.append(ViewState(view))

    def back(self) -> None:
        """Clear the filter or, without a filter, return to the previous view on the stack."""
        if self.current.filter:
            self.current.filter = ""
        elif len(self.trail) > 1:
            self.trail.pop()

    # Also commands.

    def pause(self) -> None:
        """Freeze or unfreeze the screen."""
        self.is_paused = not self.is_paused

    def use_mouse(self, on: bool) -> Effect:
        """Turn the terminal's mouse reports on or off."""
        self.uses_mouse = on
        self.show_message("mouse on; hold shift to select text" if on else "mouse off")
        return UseMouse(on)

    def show_help(self) -> None:
        """Show the help of the current view."""
        self.mode, self.help_top = Mode.HELP, 0

    def show_menu(self) -> None:
        """Show the list of all views, with the current one chosen."""
        self.mode = Mode.MENU
        self.menu_cursor = [view.name for view in self.views].index(self._root)

    def toggle_details(self) -> None:
        """Show or hide the details of the selected row."""
        self.shows_details = not self.shows_details
        self.show_message("details on" if self.shows_details else "details off")

    def change_refresh(self, step: int) -> None:
        """Select the next shorter (-1) or longer (1) refresh interval."""
        at = min(
            range(len(REFRESH_SECONDS)),
            key=lambda index: abs(REFRESH_SECONDS[index] - self.refresh_seconds),
        )
        at = max(0, min(at + step, len(REFRESH_SECONDS) - 1))
        self.refresh_seconds = REFRESH_SECONDS[at]
        self.show_message(f"refresh every {self.refresh_seconds:g} s")

    def begin_typing(self, mode: Mode, text: str, history: Sequence[str]) -> None:
        """Start editing a line of text, with a history of earlier lines."""
        self.mode = mode
        self.editor = LineEditor(text, history)

    # Actions.

    def begin(self, action: Action, answers: Sequence[str], model: Model) -> Effect | None:
        """Start an action, asking for missing fields and for confirmation first.

        Args:
            action: an action of the current view.
            answers: the values of the first fields, as typed in a command.
            model: the model, which determines whether the action is available.
        """
        refused = action.refused(model)
        row = self.current.selected if action.needs_row else None
        if refused is None and action.needs_row and row is None:
            refused = "select a row first"
        if refused is not None:
            self.show_message(f"{action.label}: {refused}", is_alarm=True)
            return None
        self.prompt = Prompt(action, row, [])
        for answer in _by_field(action, answers):
            wrong = self._wrong(answer)
            if wrong is not None:
                self.prompt = None
                self.show_message(wrong, is_alarm=True)
                return None
            self.prompt.answers.append(answer)
        return self._ask_next()

    def _wrong(self, answer: str) -> str | None:
        """Return the error about a value for the next field, or None if the value is valid."""
        assert self.prompt is not None
        action, count = self.prompt.action, len(self.prompt.answers)
        if count >= len(action.fields):
            return f"{action.name}: too many arguments; expected {_fields(action)}"
        field = action.fields[count]
        if not answer:
            return None if field.is_optional else f"{field.label}: required"
        wrong = field.check(answer)
        return None if wrong is None else f"{field.label}: {wrong}"

    def _ask_next(self) -> Effect | None:
        prompt = self.prompt
        assert prompt is not None
        fields = prompt.action.fields
        if len(prompt.answers) < len(fields):
            field = fields[len(prompt.answers)]
            self.begin_typing(Mode.ASK, field.default(prompt.row), ())
            return None
        if prompt.action.question is not None:
            self.mode = Mode.CONFIRM
            return None
        self.prompt, self.mode = None, Mode.BROWSE
        return Act(prompt.action, prompt.row, tuple(prompt.answers))

    def answer(self, answer: str) -> Effect | None:
        """Fill in the next field, and return the action if it can run without confirmation."""
        assert self.prompt is not None
        wrong = self._wrong(answer)
        if wrong is not None:
            self.show_message(wrong, is_alarm=True)
            return None
        self.prompt.answers.append(answer)
        return self._ask_next()


def _by_field(action: Action, words: Sequence[str]) -> Sequence[str]:
    """Return the words of a command, of which the last field may take several."""
    last = len(action.fields) - 1
    if last < 0 or not action.fields[last].takes_rest or len(words) <= last:
        return words
    return [*words[:last], shlex.join(words[last:])]


def _fields(action: Action) -> str:
    return " ".join(field.label.upper() for field in action.fields) or "no arguments"
