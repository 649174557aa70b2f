"""Handles keys, clicks, pasted text and the command line opened by ``:``; performs no I/O."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..drawing._export import FORMS
from ..drawing._themes import THEMES
from ..terminal._keys import Event, Key, Mouse, Paste
from ._ui import ALT_KEYS, REFRESH_SECONDS, Mode, Ui
from ._view import Act, Effect, Export, Quit, Redraw, UseTheme
from ._view_state import ViewState

if TYPE_CHECKING:
    from ..model._model import Model


class KeyHandler:
    """Changes the state of the user interface on terminal events.

    Args:
        ui: the state that the events change.
    """

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._commands = Commands(ui)
        self._filter_before = ""
        self._typed_commands: list[str] = []
        self._typed_filters: list[str] = []

    def press(self, event: Event, model: Model) -> Effect | None:
        """Handle an event.

        Args:
            event: the key, mouse event or pasted text.
            model: the model, which determines which actions are available.

        Returns:
            The effect that the application must carry out; None if there is none.
        """
        if isinstance(event, Mouse):
            return self._clicked(event, model)
        if isinstance(event, Paste):
            if self._ui.mode in {Mode.FILTER, Mode.COMMAND, Mode.ASK}:
                self._ui.editor.insert(event.text)
                self._typed()
            return None
        if event.name.startswith("alt-") and event.name not in ALT_KEYS:
            # Escape and another key that a busy machine has read at once.
            self.press(Key("esc"), model)
            return self.press(Key(event.name.removeprefix("alt-")), model)
        self._ui.message = None
        if event.name == "ctrl-l":
            return Redraw()
        if event.name == "ctrl-c":  # where the terminal does not turn it into a signal
            return Quit()
        match self._ui.mode:
            case Mode.BROWSE:
                return self._browse(event.name, model)
            case Mode.HELP:
                return self._read_help(event.name)
            case Mode.MENU:
                return self._choose_view(event.name)
            case Mode.CONFIRM:
                return self._confirm(event.name)
            case _:
                return self._type(event.name, model)

    def _browse(self, key: str, model: Model) -> Effect | None:
        place = self._ui.current
        step = _steps(place).get(key)
        if step is not None:
            step()
            return None
        for view in self._ui.views:
            if view.key == key:
                self._ui.show(view.name)
                return None
        for action in place.view.actions:
            if action.key == key:
                return self._ui.begin(action, (), model)
        for link in place.view.links:
            if link.key == key:
                self._ui.follow(link)
                return None
        return self._do(key)

    def _do(self, key: str) -> Effect | None:
        if key == "q":
            return Quit()
        if key == "m":
            return self._ui.use_mouse(not self._ui.uses_mouse)
        if key == "/":
            self._filter_before = self._ui.current.filter
            self._ui.begin_typing(Mode.FILTER, self._ui.current.filter, self._typed_filters)
        elif key == ":":
            self._ui.begin_typing(Mode.COMMAND, "", self._typed_commands)
        elif key == "x":
            self._ui.begin_typing(Mode.COMMAND, f"export {self._ui.current.view.name}.svg", ())
        elif key in _OPERATIONS:
            _OPERATIONS[key](self._ui)
        return None

    def _read_help(self, key: str) -> Effect | None:
        step = {"down": 1, "j": 1, "up": -1, "k": -1, "pagedown": 10, "pageup": -10}.get(key)
        if step is not None:
            self._ui.help_top = max(0, self._ui.help_top + step)
        elif key == "q":
            return Quit()
        elif key in {"?", "f1", "esc", "enter", "backspace"}:
            self._ui.mode = Mode.BROWSE
        return None

    def _choose_view(self, key: str) -> Effect | None:
        ui = self._ui
        step = {"down": 1, "j": 1, "tab": 1, "up": -1, "k": -1, "backtab": -1}.get(key)
        if step is not None:
            ui.menu_cursor = (ui.menu_cursor + step) % len(ui.views)
            return None
        ui.mode = Mode.BROWSE
        chosen = ui.views[ui.menu_cursor] if key == "enter" else None
        for view in ui.views:
            if view.key == key or view is chosen:
                ui.show(view.name)
        return Quit() if key == "q" else None

    def _confirm(self, key: str) -> Effect | None:
        prompt, self._ui.prompt, self._ui.mode = self._ui.prompt, None, Mode.BROWSE
        assert prompt is not None
        if key in {"y", "Y"}:
            return Act(prompt.action, prompt.row, tuple(prompt.answers))
        self._ui.show_message(f"{prompt.action.label}: cancelled")
        return None

    def _type(self, key: str, model: Model) -> Effect | None:
        if key == "esc":
            self._cancel_typing()
            return None
        if key == "enter":
            return self._entered(model)
        if key == "tab":
            if self._ui.mode is Mode.COMMAND:
                self._ui.editor.replace(self._commands.completed(self._ui.editor.text))
            return None
        if key == "backspace" and not self._ui.editor.text and self._ui.mode is not Mode.ASK:
            self._cancel_typing()
            return None
        self._ui.editor.press(key)
        self._typed()
        return None

    def _typed(self) -> None:
        if self._ui.mode is Mode.FILTER:
            self._ui.current.filter = self._ui.editor.text

    def _cancel_typing(self) -> None:
        if self._ui.mode is Mode.FILTER:
            self._ui.current.filter = self._filter_before
        elif self._ui.mode is Mode.ASK and self._ui.prompt is not None:
            self._ui.show_message(f"{self._ui.prompt.action.label}: cancelled")
        self._ui.prompt, self._ui.mode = None, Mode.BROWSE

    def _entered(self, model: Model) -> Effect | None:
        mode, text = self._ui.mode, self._ui.editor.text
        if mode is Mode.ASK:
            return self._ui.answer(text.strip())
        self._ui.mode = Mode.BROWSE
        if mode is Mode.FILTER:
            _add_to_history(self._typed_filters, text)
            return None
        _add_to_history(self._typed_commands, text)
        try:
            return self._commands.run(text, model)
        except CommandError as mistake:
            self._ui.show_message(str(mistake), is_alarm=True)
            return None

    def _clicked(self, event: Mouse, model: Model) -> Effect | None:
        if event.kind in {"wheel-up", "wheel-down"}:
            self._wheel(3 if event.kind == "wheel-down" else -3)
        elif event.kind == "press" and event.button == 0:
            key = self._ui.hits.key_at(event.column, event.row)
            if key is not None:
                return self.press(Key(key), model)
            if self._ui.mode is Mode.BROWSE:
                self._click(event.column, event.row)
        return None

    def _wheel(self, step: int) -> None:
        if self._ui.mode is Mode.BROWSE:
            self._ui.current.move(step)
        elif self._ui.mode is Mode.HELP:
            self._ui.help_top = max(0, self._ui.help_top + step)

    def _click(self, column: int, row: int) -> None:
        hits, place = self._ui.hits, self._ui.current
        if row == hits.heading_row:
            for begin, end, name in hits.headings:
                if begin <= column < end:
                    place.sort_by_click(name)
        elif place.table is not None and column < hits.body_end:
            index = place.top + row - hits.body_row
            if place.top <= index < min(len(place.rows), place.top + place.height):
                if index == place.cursor:
                    self._ui.open()
                else:
                    place.move_to(index)


_OPERATIONS: Final[Mapping[str, Callable[[Ui], None]]] = {
    "enter": Ui.open,
    **dict.fromkeys(("esc", "backspace"), Ui.back),
    "tab": lambda ui: ui.show_next(1),
    "backtab": lambda ui: ui.show_next(-1),
    "`": Ui.show_before,
    "s": lambda ui: ui.current.sort_by_next(),
    "r": lambda ui: ui.current.reverse(),
    **dict.fromkeys(("p", " "), Ui.pause),
    **dict.fromkeys(("+", "="), lambda ui: ui.change_refresh(-1)),
    "-": lambda ui: ui.change_refresh(1),
    **dict.fromkeys(("?", "f1"), Ui.show_help),
    ".": Ui.show_menu,
    "w": Ui.toggle_details,
}


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


# The command line.


class CommandError(Exception):
    """Raised when a command or an argument is invalid. The message says what is allowed."""


class Commands:
    """The commands of the user interface.

    Args:
        ui: the state that the commands change.
    """

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._commands: dict[str, Callable[[Sequence[str]], Effect | None]] = {
            "quit": self._quit,
            "filter": self._filter,
            "sort": self._sort,
            "pause": self._pause,
            "refresh": self._refresh,
            "export": self._export,
            "mouse": self._mouse,
            "theme": self._theme,
            "help": self._help,
        }

    def names(self) -> list[str]:
        """Return the commands available in the current view."""
        views = [view.name for view in self._ui.views]
        view = self._ui.current.view
        actions = [action.name for action in view.actions]
        links = [link.name for link in view.links]
        return [*views, *actions, *links, *self._commands]

    def run(self, text: str, model: Model) -> Effect | None:
        """Run a command line, and return the effect that the application must carry out, or None.

        Raises:
            CommandError: the command is unknown or has invalid arguments.
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise CommandError(f"{text}: {error}") from error
        if not words:
            return None
        name, rest = self._meant(words[0]), words[1:]
        ui = self._ui
        if name in self._commands:
            return self._commands[name](rest)
        for action in ui.current.view.actions:
            if action.name == name:
                return ui.begin(action, rest, model)
        for link in ui.current.view.links:
            if link.name == name and not rest:
                ui.follow(link)
                return None
        if rest:
            raise CommandError(f"{name}: takes no arguments; to filter, use /{' '.join(rest)}")
        ui.show(name)
        return None

    def completed(self, text: str) -> str:
        """Complete a command or a column name up to the first ambiguous character."""
        word, space, rest = text.partition(" ")
        if space:
            if self._meant_or_none(word) != "sort":
                return text
            return f"{word} {_common(rest, self._columns())}"
        return _common(word, self.names())

    def _meant(self, word: str) -> str:
        name = self._meant_or_none(word)
        if name is None:
            from ..._util._text import nearest  # only for errors

            names = self.names()
            known = [each for each in names if each.startswith(word)] or names
            near = nearest(word, names) if known is names else ""
            raise CommandError(f"{word}: unknown command{near}; available: {', '.join(known)}")
        return name

    def _meant_or_none(self, word: str) -> str | None:
        """Return the command with this name or unambiguous abbreviation, or None."""
        names = self.names()
        if word == "q":
            return "quit"
        if word in names:
            return word
        found = [name for name in names if name.startswith(word)]
        return found[0] if len(found) == 1 else None

    def _columns(self) -> list[str]:
        table = self._ui.current.table
        return [] if table is None else table.sortable()

    def _quit(self, words: Sequence[str]) -> Effect:
        _none("quit", words)
        return Quit()

    def _filter(self, words: Sequence[str]) -> None:
        self._ui.current.filter = " ".join(words)

    def _sort(self, words: Sequence[str]) -> None:
        columns = self._columns()
        if not columns:
            raise CommandError("sort: this view has no table")
        orders = {"asc": False, "desc": True}
        descending = orders.get(words[-1]) if words else None
        column = self._column_called(" ".join(words if descending is None else words[:-1]))
        if column is None:
            raise CommandError(f"sort: usage: COLUMN [asc|desc]; columns: {', '.join(columns)}")
        self._ui.current.sort_by(column, descending=descending)

    def _column_called(self, text: str) -> str | None:
        """Return the name of the sortable column with this name or heading, or None."""
        names, table = self._columns(), self._ui.current.table
        if text in names:
            return text
        columns = () if table is None or not text else table.columns
        called = (each.name for each in columns if each.title.lower() == text.lower())
        return next((name for name in called if name in names), None)

    def _pause(self, words: Sequence[str]) -> None:
        _none("pause", words)
        self._ui.pause()

    def _refresh(self, words: Sequence[str]) -> None:
        least, most = REFRESH_SECONDS[0], REFRESH_SECONDS[-1]
        try:
            seconds = float(words[0]) if len(words) == 1 else 0.0
        except ValueError:
            seconds = 0.0
        if not least <= seconds <= most:
            raise CommandError(f"refresh: usage: SECONDS, from {least:g} to {most:g}")
        self._ui.refresh_seconds = seconds

    def _export(self, words: Sequence[str]) -> Effect:
        if len(words) != 1 or words[0].rpartition(".")[2].lower() not in FORMS:
            forms = ", ".join(f".{form}" for form in FORMS)
            raise CommandError(f"export: usage: FILE, with the extension {forms}")
        return Export(words[0])

    def _mouse(self, words: Sequence[str]) -> Effect:
        if words not in (["on"], ["off"], []):
            raise CommandError("mouse: usage: on or off")
        return self._ui.use_mouse(words == ["on"] if words else not self._ui.uses_mouse)

    def _theme(self, words: Sequence[str]) -> Effect:
        if len(words) != 1 or words[0] not in (*THEMES, "auto"):
            raise CommandError(f"theme: usage: {', '.join(THEMES)} or auto")
        return UseTheme(None if words[0] == "auto" else words[0])

    def _help(self, words: Sequence[str]) -> None:
        _none("help", words)
        self._ui.show_help()


def _none(name: str, words: Sequence[str]) -> None:
    if words:
        raise CommandError(f"{name}: takes no arguments")


def _common(prefix: str, names: Sequence[str]) -> str:
    """Return the longest common prefix of all names that start with ``prefix``."""
    found = [name for name in names if name.startswith(prefix)]
    if not found:
        return prefix
    first, last = min(found), max(found)
    length = next(
        (n for n, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(last)),
    )
    return first[:length] + (" " if len(found) == 1 else "")
