"""A one-line text editor with a history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
