"""What the dashboard shows of a model, as text, after some keys were pressed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trionet.dashboard.drawing._cells import UNICODE, Glyphs
from trionet.dashboard.drawing._export import as_text
from trionet.dashboard.model._model import Model
from trionet.dashboard.terminal._keys import Key
from trionet.dashboard.ui._key_handler import KeyHandler
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.ui._view import Effect, View
from trionet.dashboard.views import all_views


class Shown:
    """A dashboard without a terminal.

    Args:
        model: what it shows.
        view: the name of the view that is shown first.
        views: those with tabs; None for all of the dashboard's own.

    Attributes:
        ui: the state of its user interface.
        effects: what the keys have asked for.
    """

    def __init__(
        self,
        model: Model,
        view: str,
        width: int = 120,
        height: int = 30,
        glyphs: Glyphs = UNICODE,
        *,
        views: Sequence[View] | None = None,
    ) -> None:
        self.model = model
        self.ui = Ui(all_views() if views is None else views, view)
        # They repeat what is in the rows, of which tests expect one.
        self.ui.shows_details = False
        self._keys = KeyHandler(self.ui)
        self.effects: list[Effect] = []
        self._size = width, height, glyphs

    @property
    def text(self) -> str:
        """What is seen."""
        return as_text(draw(self.ui, self.model, *self._size))

    def press(self, *keys: str) -> str:
        """Press keys, one after the other; gives what is seen then."""
        text = self.text
        for key in keys:
            effect = self._keys.press(Key(key), self.model)
            if effect is not None:
                self.effects.append(effect)
            text = self.text
        return text

    def type(self, text: str) -> str:
        """Type a line and enter it."""
        return self.press(*text, "enter")

    def line(self, words: str) -> list[str]:
        """The words of the line that holds some."""
        [found] = [line for line in self.text.splitlines() if words in line]
        return found.split()


def wanted_by(shown: Shown) -> tuple[str | None, object]:
    """What the view that is shown asks a source for."""
    view = shown.ui.current.view
    return view.section, view.section_key


def lines_with(text: str, words: Iterable[str]) -> list[str]:
    """The lines that hold all of some words."""
    wanted = list(words)
    return [line for line in text.splitlines() if all(word in line for word in wanted)]
