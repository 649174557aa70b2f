"""One line of text that is being typed; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: Longer than any name of Kafka's; what comes beyond is not snapshot.
CHARS_MAX: Final = 1000
#: The keys with alt that mean something.
ALT_KEYS: Final = frozenset({"alt-backspace"})
#: How many lines are remembered.
HISTORY_MAX: Final = 100


class LineEditor:
    """A line of text and the place in it where the next character goes.

    Args:
        text: what stands there at first.
        remembered: earlier lines, the last one last, for the arrows up and down.
    """

    def __init__(self, text: str = "", remembered: Sequence[str] = ()) -> None:
        self.text = text
        self.cursor = len(text)
        self._lines = [*remembered[-HISTORY_MAX:], text]
        self._line = len(self._lines) - 1

    def insert(self, text: str) -> None:
        """Put text in; of a paste, the first line."""
        line = next(iter(text.splitlines()), "")[: CHARS_MAX - len(self.text)]
        self.text = self.text[: self.cursor] + line + self.text[self.cursor :]
        self.cursor += len(line)

    def press(self, key: str) -> bool:
        """Take a key; False for one that means nothing here."""
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
        """Have another line."""
        self._set(text, "")

    def _set(self, before: str, after: str) -> None:
        self.text, self.cursor = before + after, len(before)

    def _recall(self, step: int) -> None:
        line = self._line + step
        if 0 <= line < len(self._lines):
            self._lines[self._line] = self.text
            self._line = line
            self.replace(self._lines[line])
