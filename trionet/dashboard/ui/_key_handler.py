"""Key, click and paste handling for the user interface; performs no I/O."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..terminal._keys import Event, Key, Mouse, Paste
from ._commands import CommandError, Commands
from ._effects import Act, Effect, Quit, Redraw
from ._line_editor import ALT_KEYS
from ._ui import Mode, Ui
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
            return self._clicked(event)
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
        match key:
            case "q":
                return Quit()
            case "enter":
                self._ui.open()
            case "esc" | "backspace":
                self._ui.back()
            case "tab" | "backtab":
                self._ui.show_next(1 if key == "tab" else -1)
            case "`":
                self._ui.show_before()
            case "/":
                self._filter_before = self._ui.current.filter
                self._ui.begin_typing(Mode.FILTER, self._ui.current.filter, self._typed_filters)
            case ":":
                self._ui.begin_typing(Mode.COMMAND, "", self._typed_commands)
            case "s":
                self._ui.current.sort_by_next()
            case "r":
                self._ui.current.reverse()
            case "p" | " ":
                self._ui.pause()
            case "+" | "=":
                self._ui.change_refresh(-1)
            case "-":
                self._ui.change_refresh(1)
            case "x":
                self._ui.begin_typing(Mode.COMMAND, f"export {self._ui.current.view.name}.svg", ())
            case "m":
                return self._ui.use_mouse(not self._ui.uses_mouse)
            case "?" | "f1":
                self._ui.show_help()
            case _:
                pass
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

    def _clicked(self, event: Mouse) -> Effect | None:
        if self._ui.mode is not Mode.BROWSE:
            return None
        if event.kind in {"wheel-up", "wheel-down"}:
            self._ui.current.move(3 if event.kind == "wheel-down" else -3)
        elif event.kind == "press" and event.button == 0:
            self._click(event.column, event.row)
        return None

    def _click(self, column: int, row: int) -> None:
        hits, place = self._ui.hits, self._ui.current
        if row == 1:
            for begin, end, name in hits.tabs:
                if begin <= column < end:
                    self._ui.show(name)
        elif row == hits.heading_row:
            for begin, end, name in hits.headings:
                if begin <= column < end:
                    place.sort_by_click(name)
        elif place.table is not None:
            index = place.top + row - hits.body_row
            if place.top <= index < min(len(place.rows), place.top + place.height):
                if index == place.cursor:
                    self._ui.open()
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
