"""The command line opened by ``:``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..drawing._export import FORMS
from ._effects import Effect, Export, Quit
from ._ui import REFRESH_SECONDS, Ui

if TYPE_CHECKING:
    from ..model._model import Model


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
            known = [each for each in self.names() if each.startswith(word)] or self.names()
            raise CommandError(f"{word}: unknown command; available: {', '.join(known)}")
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
        column, order = [*words, "", ""][:2]
        if len(words) > 2 or column not in columns or (order and order not in orders):
            raise CommandError(f"sort: usage: COLUMN [asc|desc]; columns: {', '.join(columns)}")
        self._ui.current.sort_by(column, descending=orders.get(order))

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
