"""Parses regular expressions: what the supported dialects have in common."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, NamedTuple

from ._program import Accepts, Check, Op, Program, State

DEPTH_MAX: Final = 50
"""How deep groups may be nested."""

REPEAT: Final = re.compile(r"\{(\d+)(,?)(\d*)\}")
_END: Final = 0


class Fragment(NamedTuple):
    """A part of an expression, which can be added to a program several times.

    Attributes:
        build: adds states that continue with a given state, and returns the first of them.
        can_be_empty: whether it may match without consuming anything.
    """

    build: Callable[[int], int]
    can_be_empty: bool = False


class Parser(ABC):
    """Compiles an expression to a program.

    Args:
        text: the expression.
        states_max: the maximum number of states, which bounds the time per character of a text.

    Raises:
        ValueError: the expression is invalid, too large, or uses syntax that is not supported.
    """

    has_groups = True
    """Whether the positions of groups are stored."""

    def __init__(self, text: str, states_max: int) -> None:
        self._states_max = states_max
        self._parts_max = 10 * states_max  # built, counting repeated and empty ones
        if len(text) > 10 * states_max:
            raise ValueError(f"the expression may have {10 * states_max} characters")
        self._text = text
        self._at = 0
        self._characters = 0  # how many parts accept a character, before they are repeated
        self._depth = 0
        self._parts = 0
        self._states = [State(Op.END, None, ())]
        self._checks: list[Check] = []
        self._group_count = 1 if self.has_groups else 0  # with the whole match
        self._loop_count = 0
        self._is_linear = True
        self._has_back_references = False

    def parse(self) -> Program:
        """Parse the whole expression."""
        fragment = self._alternatives()
        if self._next:
            raise ValueError(f"unexpected {self._next!r} at position {self._at}")
        if self.has_groups:
            fragment = self._saved(fragment, 0)
        first = fragment.build(_END)
        return Program(
            self._states,
            first,
            self._checks,
            self._group_count,
            self._loop_count,
            self._is_linear,
            self._has_back_references,
        )

    @abstractmethod
    def _atom(self) -> Fragment:
        """Parse a part that may be repeated."""

    def _take_flags(self) -> bool:
        """Parse flags that hold until the end of their group, if there are any."""
        return False

    @property
    def _repeat_counts(self) -> re.Pattern[str]:
        return REPEAT

    def _take_ignored(self) -> bool:
        """Parse what means nothing, such as a comment, if there is any."""
        return False

    def _add(self, op: Op, argument: object, *following: int) -> int:
        if len(self._states) >= self._states_max:
            raise self._too_large()
        self._states.append(State(op, argument, following))
        return len(self._states) - 1

    def _too_large(self) -> ValueError:
        return ValueError(f"the expression is too large; it may have {self._states_max} states")

    def _alternatives(self) -> Fragment:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ValueError(f"groups may be nested {DEPTH_MAX} deep")
        branches = [self._branch()]
        while self._take("|"):
            branches.append(self._branch())
        self._depth -= 1
        if len(branches) == 1:
            return branches[0]
        return Fragment(
            lambda after: self._add(Op.FREE, None, *(each.build(after) for each in branches)),
            any(each.can_be_empty for each in branches),
        )

    def _branch(self) -> Fragment:
        parts: list[Fragment] = []
        self._take_ignored()
        while self._next and self._next not in "|)":
            if not self._take_flags():
                parts.append(self._repeated(self._atom()))
            self._take_ignored()
        return Fragment(
            lambda after: self._in_sequence(parts, after),
            all(each.can_be_empty for each in parts),
        )

    def _in_sequence(self, parts: list[Fragment], after: int) -> int:
        self._parts += 1 + len(parts)
        if self._parts > self._parts_max:
            raise self._too_large()
        for part in reversed(parts):
            after = part.build(after)
        return after

    def _accepting(self, accepts: Accepts) -> Fragment:
        self._characters += 1
        if self._characters >= self._states_max:
            raise self._too_large()
        return Fragment(lambda after: self._add(Op.ACCEPT, accepts, after))

    def _checking(self, check: Check) -> Fragment:
        if check not in self._checks:
            self._checks.append(check)
        number = self._checks.index(check)
        return Fragment(lambda after: self._add(Op.CHECK, number, after), can_be_empty=True)

    def _saved(self, fragment: Fragment, group: int) -> Fragment:
        def build(after: int) -> int:
            inner = fragment.build(self._add(Op.SAVE, 2 * group + 1, after))
            return self._add(Op.SAVE, 2 * group, inner)

        return Fragment(build, fragment.can_be_empty)

    def _repeated(self, part: Fragment) -> Fragment:
        """Parse a repetition, if there is one, and return the repeated part."""
        self._take_ignored()
        counts = self._take_counts()
        if counts is None:
            return part
        least, most = counts
        if (most is not None and most < least) or max(least, most or 0) > self._states_max:
            raise ValueError(f"cannot repeat from {least} to {most} times")
        self._take_ignored()
        is_greedy = not self._take("?")
        repeated = Fragment(
            lambda after: self._repeat(part, least, most, is_greedy, after),
            part.can_be_empty or least == 0,
        )
        return self._after_repetition(repeated) if is_greedy else repeated

    def _after_repetition(self, repeated: Fragment) -> Fragment:
        """Parse what may follow a greedy repetition."""
        return repeated

    def _take_counts(self) -> tuple[int, int | None] | None:
        match = self._repeat_counts.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            least = int(match[1])
            return least, int(match[3]) if match[3] else None if match[2] else least
        if self._take("*"):
            return 0, None
        if self._take("+"):
            return 1, None
        return (0, 1) if self._take("?") else None

    def _repeat(
        self, part: Fragment, least: int, most: int | None, is_greedy: bool, after: int
    ) -> int:
        if most is None:
            state = self._loop(part, is_greedy, after)
        else:
            state = after
            for _ in range(most - least):
                state = self._choice(part.build(state), after, is_greedy)
        return self._in_sequence([part] * least, state)

    def _choice(self, again: int, after: int, is_greedy: bool) -> int:
        return self._add(Op.FREE, None, *((again, after) if is_greedy else (after, again)))

    def _loop(self, part: Fragment, is_greedy: bool, after: int) -> int:
        if not (self.has_groups and part.can_be_empty):
            loop = self._add(Op.FREE, None)
            again = part.build(loop)
            following = (again, after) if is_greedy else (after, again)
            self._states[loop] = State(Op.FREE, None, following)
            return loop
        number = self._loop_count
        self._loop_count += 1
        leave = self._add(Op.LEAVE, None)
        enter = self._add(Op.ENTER, number, part.build(leave))
        self._states[leave] = State(Op.LEAVE, (number, is_greedy), (enter, after))
        return self._choice(enter, after, is_greedy)

    @property
    def _next(self) -> str:
        """The next character of the expression; empty at its end."""
        return self._text[self._at : self._at + 1]

    def _take_one(self) -> str:
        character = self._next
        self._at += 1
        return character

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False
