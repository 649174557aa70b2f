"""A program's own regular expression, matched against names that strangers choose.

Python's ``re`` is the fastest where it cannot take long, which a name's length and the repetitions
of the expression decide: ``orders-.*`` never does. A name for which it could backtrack for long is
matched in a bounded number of steps, by the matcher of Java's dialect, which for the characters of
names and the syntax that both have says the same.
"""

from __future__ import annotations

import math
import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ._java_pattern import JavaPattern

BACKTRACKS_MAX: Final = 3_000_000
"""How many ways to divide a name among repetitions ``re`` may have to try: some 30 ms."""
STEPS_MAX: Final = 100_000
"""How many steps the other matcher may take for a name: some 30 ms."""
REMEMBERED_MAX: Final = 10_000
"""For how many names the verdicts of the other matcher are kept, as they are asked for again."""

_OPEN: Final = re.compile(r"\\.|([*+]|\{\d*,\d*\})", re.DOTALL)
_OPEN_GROUP: Final = re.compile(r"\\.|(\)(?:[*+]|\{))", re.DOTALL)
_ORDINARY: Final = re.compile(r"[!-~ ]*")
# Inside a class, which may begin with a "]", Java has sets and Python has not, and Java ignores
# blanks with the flag x. Octal numbers may differ in length, and those of groups be octal in
# Python, where letters beyond ASCII are other cases of "i", "k" and "s".
_OTHER_DIALECT: Final = re.compile(r"&&|\[\^?\]?(?:\\.|[^\]\\])*\[|\\[0-9NuU]|\(\?[a-z]*x")
_SAME_FLAGS: Final = re.ASCII | re.UNICODE | re.IGNORECASE | re.DOTALL | re.MULTILINE


class NamePattern:
    """A pattern that must match whole names.

    Args:
        pattern: the program's pattern.

    Attributes:
        pattern: the same.
    """

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        text = pattern.pattern
        self._repetitions = sum(bool(each[1]) for each in _OPEN.finditer(text))
        self._is_nested = any(each[1] for each in _OPEN_GROUP.finditer(text))
        self._matches_bounded = lru_cache(REMEMBERED_MAX)(self._in_steps)

    def matches(self, name: str) -> bool:
        """Return whether the pattern matches a whole name.

        A name that would take too many steps counts as not matched, with a warning. Of a pattern
        whose syntax only Python has, or a name that is not of printable ASCII characters, ``re``
        alone can say, however long it takes.
        """
        if self._is_quick(len(name)) or not _ORDINARY.fullmatch(name) or self._bounded is None:
            return self.pattern.fullmatch(name) is not None
        return self._matches_bounded(name)

    @cached_property
    def _bounded(self) -> JavaPattern | None:
        return _in_java(self.pattern)

    def _is_quick(self, length: int) -> bool:
        if self._is_nested:
            return False
        return math.comb(length + self._repetitions, self._repetitions) <= BACKTRACKS_MAX

    def _in_steps(self, name: str) -> bool:
        from ._program import Steps, TooManyStepsError  # slow to import, rarely needed

        assert self._bounded is not None
        try:
            return self._bounded.matches(name, Steps(STEPS_MAX))
        except TooManyStepsError:
            from .._logging import get_logger

            get_logger(__name__).warning(
                "the pattern %r takes more than %d steps for the name %r, which counts as not"
                " matched; avoid lookahead and repetitions of what is repeated",
                self.pattern.pattern,
                STEPS_MAX,
                name,
            )
            return False


def _in_java(pattern: re.Pattern[str]) -> JavaPattern | None:
    """Return a pattern in Java's dialect, if it says the same there."""
    from ._java_pattern import JavaPattern  # slow to import, rarely needed

    text, flags = pattern.pattern, pattern.flags
    if not text.isascii() or _OTHER_DIALECT.search(text) or flags & ~_SAME_FLAGS:
        return None
    letters = "".join(
        letter
        for letter, flag in (("i", re.IGNORECASE), ("s", re.DOTALL), ("m", re.MULTILINE))
        if flags & flag
    )
    try:
        return JavaPattern(f"(?{letters}){text}" if letters else text, ignored_flags="au")
    except ValueError:
        return None
