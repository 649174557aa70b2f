"""Keys to state: the selected view, the text being typed, the action being confirmed; pure.

The problem: one keyboard has to browse tables, edit a filter or a command line, fill in the fields
of an action and confirm it, and the same operation is often a key, a command and a click. And none
of it may do I/O, or a slow broker would freeze the keyboard.

The choice: one state object and an explicit :class:`Mode`. :meth:`Ui.press` takes an event and
changes the state; what needs I/O (leaving, exporting, an action on the broker) it returns as an
effect for the application. Each view with a tab has a stack of :class:`.ViewState`, so that
switching tabs keeps the cursor, the sort order and the filter. Tests press keys and read the state,
without a terminal.

Rejected: a widget toolkit (focus and layout for one table and one line of text, and tens of
milliseconds at start) and a task per dialog (a dialog would have to be cancelled by every key that
leaves it). Think again if two tables ever share the screen: there is one cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from .._settings import REFRESH_SECONDS
from ..terminal._keys import Event, Key, Mouse, Paste
from ._commands import CommandError, Commands
from ._effects import Act, Effect, Quit, Redraw, UseMouse
from ._line_editor import ALT_KEYS, LineEditor
from ._view import Action, Link, View
from ._view_state import ViewState

if TYPE_CHECKING:
    from ..model._model import Model

#: How many views can be stacked on one another.
DEPTH_MAX: Final = 16


class Mode(Enum):
    """What keys do at the moment."""

    BROWSE = auto()
    FILTER = auto()
    COMMAND = auto()
    ASK = auto()
    CONFIRM = auto()
    HELP = auto()


@attrs.frozen
class Message:
    """A line at the bottom of the screen, shown until the next key."""

    text: str
    is_alarm: bool = False


@attrs.define
class Prompt:
    """An action whose fields are being filled in, or which waits for its confirmation."""

    action: Action
    row: Any
    answers: list[str]

    @property
    def question(self) -> str:
        """The question to confirm."""
        assert self.action.question is not None
        return self.action.question(self.row, self.answers)


@attrs.define
class Hits:
    """Where things are on the screen, for the mouse: columns from 0, ends exclusive, and rows."""

    tabs: list[tuple[int, int, str]] = attrs.Factory(list)
    headings: list[tuple[int, int, str]] = attrs.Factory(list)
    heading_row: int = -1
    body_row: int = 0


class Ui:
    """The state of the user interface.

    Args:
        views: the views with a tab, in the order of the tabs.
        first: the name of the view shown first.
        refresh_seconds: how often sources read.

    Attributes:
        mode: what keys do at the moment.
        editor: the line being typed.
        is_paused: whether the screen is frozen.
        uses_mouse: whether the terminal reports clicks.
        message: shown at the bottom; None shows the hints.
        prompt: the action being filled in or confirmed.
        help_top: the first line of the help on the screen.
        hits: where things are on the screen.
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
        self.hits = Hits()
        self._stacks = {view.name: [ViewState(view)] for view in views}
        self._root = first
        self._before = first
        self._filter_before = ""
        self._commands_typed: list[str] = []
        self._filters_typed: list[str] = []
        self.commands = Commands(self)

    @property
    def trail(self) -> list[ViewState]:
        """The stack of views, from the one with a tab to the one on the screen."""
        return self._stacks[self._root]

    @property
    def current(self) -> ViewState:
        """The state of the view on the screen."""
        return self.trail[-1]

    @property
    def root(self) -> str:
        """The name of the view with a tab that the stack starts with."""
        return self._root

    def show_message(self, text: str, *, is_alarm: bool = False) -> None:
        """Show a message at the bottom until the next key."""
        self.message = Message(text, is_alarm)

    # Events.

    def press(self, event: Event, model: Model) -> Effect | None:
        """Handle an event.

        Args:
            event: of the keyboard or the mouse.
            model: decides which actions are available.

        Returns:
            What the application has to do; None if nothing.
        """
        if isinstance(event, Mouse):
            return self._clicked(event)
        if isinstance(event, Paste):
            if self.mode in {Mode.FILTER, Mode.COMMAND, Mode.ASK}:
                self.editor.insert(event.text)
                self._typed()
            return None
        if event.name.startswith("alt-") and event.name not in ALT_KEYS:
            # Escape and another key that a busy machine has read at once.
            self.press(Key("esc"), model)
            return self.press(Key(event.name.removeprefix("alt-")), model)
        self.message = None
        if event.name == "ctrl-l":
            return Redraw()
        if event.name == "ctrl-c":  # where the terminal does not turn it into a signal
            return Quit()
        match self.mode:
            case Mode.BROWSE:
                return self._browse(event.name, model)
            case Mode.HELP:
                return self._read_help(event.name)
            case Mode.CONFIRM:
                return self._confirm(event.name)
            case _:
                return self._type(event.name, model)

    def _browse(self, key: str, model: Model) -> Effect | None:
        place = self.current
        step = _steps(place).get(key)
        if step is not None:
            step()
            return None
        for view in self.views:
            if view.key == key:
                self.show(view.name)
                return None
        for action in place.view.actions:
            if action.key == key:
                return self.begin(action, (), model)
        for link in place.view.links:
            if link.key == key:
                self.follow(link)
                return None
        return self._do(key)

    def _do(self, key: str) -> Effect | None:
        match key:
            case "q":
                return Quit()
            case "enter":
                self.open()
            case "esc" | "backspace":
                self.back()
            case "tab" | "backtab":
                self._next(1 if key == "tab" else -1)
            case "`":
                self.show(self._before)
            case "/":
                self._filter_before = self.current.filter
                self._begin_typing(Mode.FILTER, self.current.filter, self._filters_typed)
            case ":":
                self._begin_typing(Mode.COMMAND, "", self._commands_typed)
            case "s":
                self.current.sort_by_next()
            case "r":
                self.current.reverse()
            case "p" | " ":
                self.pause()
            case "+" | "=":
                self._refresh(-1)
            case "-":
                self._refresh(1)
            case "x":
                self._begin_typing(Mode.COMMAND, f"export {self.current.view.name}.svg", ())
            case "m":
                return self.use_mouse(not self.uses_mouse)
            case "?" | "f1":
                self.show_help()
            case _:
                pass
        return None

    def _read_help(self, key: str) -> Effect | None:
        step = {"down": 1, "j": 1, "up": -1, "k": -1, "pagedown": 10, "pageup": -10}.get(key)
        if step is not None:
            self.help_top = max(0, self.help_top + step)
        elif key == "q":
            return Quit()
        elif key in {"?", "f1", "esc", "enter", "backspace"}:
            self.mode = Mode.BROWSE
        return None

    def _confirm(self, key: str) -> Effect | None:
        prompt, self.prompt, self.mode = self.prompt, None, Mode.BROWSE
        assert prompt is not None
        if key in {"y", "Y"}:
            return Act(prompt.action, prompt.row, tuple(prompt.answers))
        self.show_message(f"{prompt.action.label}: cancelled")
        return None

    # Moving between views.

    def show(self, name: str) -> None:
        """Show a view with a tab, as it was left; if it is shown already, return to its top."""
        if name == self._root:
            del self.trail[1:]
            return
        self._before, self._root = self._root, name

    def _next(self, step: int) -> None:
        names = [view.name for view in self.views]
        self.show(names[(names.index(self._root) + step) % len(names)])

    def open(self) -> None:
        """Open the selected row."""
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
        """Clear the filter; without one, return to the view below on the stack."""
        if self.current.filter:
            self.current.filter = ""
        elif len(self.trail) > 1:
            self.trail.pop()

    # Also commands.

    def pause(self) -> None:
        """Freeze the screen, or unfreeze it."""
        self.is_paused = not self.is_paused

    def use_mouse(self, on: bool) -> Effect:
        """Turn mouse reports of the terminal on or off."""
        self.uses_mouse = on
        self.show_message("mouse on; hold shift to select text" if on else "mouse off")
        return UseMouse(on)

    def show_help(self) -> None:
        """Show the help of the current view."""
        self.mode, self.help_top = Mode.HELP, 0

    def _refresh(self, step: int) -> None:
        at = min(
            range(len(REFRESH_SECONDS)),
            key=lambda index: abs(REFRESH_SECONDS[index] - self.refresh_seconds),
        )
        at = max(0, min(at + step, len(REFRESH_SECONDS) - 1))
        self.refresh_seconds = REFRESH_SECONDS[at]
        self.show_message(f"refresh every {self.refresh_seconds:g} s")

    # Typing.

    def _begin_typing(self, mode: Mode, text: str, history: Sequence[str]) -> None:
        self.mode = mode
        self.editor = LineEditor(text, history)

    def _type(self, key: str, model: Model) -> Effect | None:
        if key == "esc":
            self._give_up()
            return None
        if key == "enter":
            return self._entered(model)
        if key == "tab":
            if self.mode is Mode.COMMAND:
                self.editor.replace(self.commands.completed(self.editor.text))
            return None
        if key == "backspace" and not self.editor.text and self.mode is not Mode.ASK:
            self._give_up()
            return None
        self.editor.press(key)
        self._typed()
        return None

    def _typed(self) -> None:
        if self.mode is Mode.FILTER:
            self.current.filter = self.editor.text

    def _give_up(self) -> None:
        if self.mode is Mode.FILTER:
            self.current.filter = self._filter_before
        elif self.mode is Mode.ASK and self.prompt is not None:
            self.show_message(f"{self.prompt.action.label}: cancelled")
        self.prompt, self.mode = None, Mode.BROWSE

    def _entered(self, model: Model) -> Effect | None:
        mode, text = self.mode, self.editor.text
        if mode is Mode.ASK:
            return self._answered(text.strip())
        self.mode = Mode.BROWSE
        if mode is Mode.FILTER:
            _add_to_history(self._filters_typed, text)
            return None
        _add_to_history(self._commands_typed, text)
        try:
            return self.commands.run(text, model)
        except CommandError as mistake:
            self.show_message(str(mistake), is_alarm=True)
            return None

    # Actions.

    def begin(self, action: Action, answers: Sequence[str], model: Model) -> Effect | None:
        """Start an action: ask for missing fields, then for confirmation, then run it.

        Args:
            action: an action of the current view.
            answers: values of the first fields, as typed in a command.
            model: decides whether the action is available.
        """
        refused = action.refused(model)
        row = self.current.selected if action.needs_row else None
        if refused is None and action.needs_row and row is None:
            refused = "select a row first"
        if refused is not None:
            self.show_message(f"{action.label}: {refused}", is_alarm=True)
            return None
        self.prompt = Prompt(action, row, [])
        for answer in answers:
            wrong = self._wrong(answer)
            if wrong is not None:
                self.prompt = None
                self.show_message(wrong, is_alarm=True)
                return None
            self.prompt.answers.append(answer)
        return self._ask_next()

    def _wrong(self, answer: str) -> str | None:
        """What is wrong with an answer to the next field; None if it is valid."""
        assert self.prompt is not None
        action, given = self.prompt.action, len(self.prompt.answers)
        if given >= len(action.fields):
            return f"{action.name}: too many arguments; expected {_fields(action)}"
        field = action.fields[given]
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
            self._begin_typing(Mode.ASK, field.default(prompt.row), ())
            return None
        if prompt.action.question is not None:
            self.mode = Mode.CONFIRM
            return None
        self.prompt, self.mode = None, Mode.BROWSE
        return Act(prompt.action, prompt.row, tuple(prompt.answers))

    def _answered(self, answer: str) -> Effect | None:
        assert self.prompt is not None
        wrong = self._wrong(answer)
        if wrong is not None:
            self.show_message(wrong, is_alarm=True)
            return None
        self.prompt.answers.append(answer)
        return self._ask_next()

    # The mouse.

    def _clicked(self, event: Mouse) -> Effect | None:
        if self.mode is not Mode.BROWSE:
            return None
        if event.kind in {"wheel-up", "wheel-down"}:
            self.current.move(3 if event.kind == "wheel-down" else -3)
        elif event.kind == "press" and event.button == 0:
            self._chosen_by_mouse(event.column, event.row)
        return None

    def _chosen_by_mouse(self, column: int, row: int) -> None:
        hits, place = self.hits, self.current
        if row == 1:
            for begin, end, name in hits.tabs:
                if begin <= column < end:
                    self.show(name)
        elif row == hits.heading_row:
            for begin, end, name in hits.headings:
                if begin <= column < end:
                    place.sort_by_click(name)
        elif place.table is not None:
            index = place.top + row - hits.body_row
            if place.top <= index < min(len(place.rows), place.top + place.height):
                if index == place.cursor:
                    self.open()
                else:
                    place.move_to(index)


def _steps(place: ViewState) -> dict[str, Callable[[], None]]:
    page = max(1, place.height - 1)
    moves = {
        "down": 1,
        "j": 1,
        "up": -1,
        "k": -1,
        "pagedown": page,
        "ctrl-f": page,
        "pageup": -page,
        "ctrl-b": -page,
        "ctrl-d": page // 2,
        "ctrl-u": -(page // 2),
        "g": -(1 << 60),
        "home": -(1 << 60),
        "G": 1 << 60,
        "end": 1 << 60,
    }
    return {key: partial(place.move, step) for key, step in moves.items()}


def _add_to_history(lines: list[str], text: str) -> None:
    if text.strip() and (not lines or lines[-1] != text):
        lines.append(text)
        del lines[:-100]


def _fields(action: Action) -> str:
    return " ".join(field.label.upper() for field in action.fields) or "no arguments"
