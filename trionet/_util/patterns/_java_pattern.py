"""Java's regular expressions, matched in a bounded number of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ._automaton import Automaton
from ._backtracker import Backtracker
from ._java_parser import JavaParser
from ._program import Slots, Steps

STATES_MAX: Final = 3000

STEPS_PER_MATCH: Final = 10
"""Steps that a search is counted as, beside those of its characters."""


class JavaPattern:
    r"""A regular expression in the syntax of ``java.util.regex``, with its matches and groups.

    Args:
        text: the expression.
        ignored_flags: flags that are accepted without effect, such as ``u``.
        states_max: the maximum number of states, which bounds the steps of a character.
        is_ascii: whether all texts are ASCII only, so that classes of its scripts and blocks are
            supported, such as ``\p{IsLatin}``.

    Attributes:
        text: the expression.
        group_count: the number of groups.
        groups_by_name: the numbers of named groups.
        is_linear: whether the steps are linear in the text. Back-references, lookahead,
            lookbehind, ``(?>...)``, possessive repetition and ``\R`` may need many more.

    Raises:
        ValueError: the expression is invalid, too large, or uses syntax that is not supported.
    """

    def __init__(
        self,
        text: str,
        *,
        ignored_flags: str = "",
        states_max: int = STATES_MAX,
        is_ascii: bool = False,
    ) -> None:
        self.text = text
        parser = JavaParser(text, ignored_flags, states_max, is_ascii=is_ascii)
        program = parser.parse()
        self.group_count = program.group_count - 1
        self.groups_by_name = parser.groups_by_name
        self.is_linear = program.is_linear
        self._whole: Automaton | Backtracker
        self._part: Automaton | Backtracker
        if program.is_linear:
            self._whole = Automaton(program, is_whole=True)
            self._part = Automaton(program, is_whole=False)
        else:
            self._whole = Backtracker(program, is_whole=True)
            self._part = Backtracker(program, is_whole=False)

    @property
    def remembered(self) -> int:
        """How much is remembered of the texts so far, in transitions and their threads."""
        return max(
            each.remembered for each in (self._whole, self._part) if isinstance(each, Automaton)
        )

    def matches(self, text: str, steps: Steps) -> bool:
        """Return whether the expression matches a whole text.

        Raises:
            TooManyStepsError: it takes too many steps.
        """
        return _match(self._whole, text, 0, steps) is not None

    def find_all(self, text: str, steps: Steps) -> Iterator[Slots]:
        """Yield the matches from left to right, as the starts and ends of groups, 0 first.

        Raises:
            TooManyStepsError: it takes too many steps.
        """
        start = 0
        while start <= len(text):
            slots = _match(self._part, text, start, steps)
            if slots is None:
                return
            yield slots
            begin, end = slots[:2]
            assert begin is not None
            assert end is not None
            start = end + (begin == end)


def _match(matcher: Automaton | Backtracker, text: str, start: int, steps: Steps) -> Slots | None:
    if isinstance(matcher, Backtracker):
        return matcher.match(text, start, steps)
    steps.take(STEPS_PER_MATCH)
    run = matcher.steps(text, start)
    while True:
        try:
            steps.take(next(run))
        except StopIteration as stop:
            slots: Slots | None = stop.value
            return slots
