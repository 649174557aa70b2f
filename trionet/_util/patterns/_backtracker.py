"""Runs a program by backtracking, in a bounded number of steps.

What failed once is not tried again, so that the steps are at most quadratic in the text, except
with back-references, which depend on more than the state and the position.
"""

from __future__ import annotations

from typing import Final

from ._automaton import after_iteration
from ._program import Look, Op, Program, Slots, Steps

STEPS_PER_STATE: Final = 6

_Positions = tuple[int | None, ...]
"""The slots of groups, and after them where the current iteration of each loop began."""

_Situation = tuple[int, int, tuple[bool, ...]]
"""A state, a position, and which loops are in an iteration that is still empty."""


class Backtracker:
    """Matches a whole text, or finds the leftmost match.

    Args:
        program: any program.
        is_whole: whether a match is to be the whole text.
    """

    def __init__(self, program: Program, *, is_whole: bool) -> None:
        self._program = program
        self._is_whole = is_whole
        self._slot_count = 2 * program.group_count

    def match(self, text: str, start: int, steps: Steps) -> Slots | None:
        """Match a text from a position; return its slots, or None if there is no match.

        Raises:
            TooManyStepsError: it takes too many steps.
        """
        run = _Run(self._program, text, steps)
        none: _Positions = (None,) * (self._slot_count + self._program.loop_count)
        failed: set[_Situation] = set()
        last = start if self._is_whole else len(text)
        for position in range(start, last + 1):
            end = len(text) if self._is_whole else None
            found = run.match(self._program.first, position, none, end, failed)
            if found is not None:
                return list(found[1][: self._slot_count])
        return None


class _Run:
    """One match of a text."""

    def __init__(self, program: Program, text: str, steps: Steps) -> None:
        self._program = program
        self._text = text
        self._steps = steps
        self._first_loop = 2 * program.group_count

    def match(
        self,
        first: int,
        position: int,
        saved: _Positions,
        end: int | None,
        failed: set[_Situation],
    ) -> tuple[int, _Positions] | None:
        """Return the end of the first match from a state, at ``end`` if given, and its slots.

        ``failed`` has the situations from which there is no match; they are added to it.
        """
        todo = [(first, position, saved)]
        states, text, steps = self._program.states, self._text, self._steps
        while todo:
            number, position, saved = todo.pop()
            steps.take(STEPS_PER_STATE)
            op, argument, following = states[number]
            if op is Op.END:
                if end is None or position == end:
                    return position, saved
                continue
            if not self._program.has_back_references:
                situation = (number, position, self._empty_loops(position, saved))
                if situation in failed:
                    continue
                failed.add(situation)
            if op is Op.ACCEPT:
                if position < len(text) and argument(text[position]):
                    todo.append((following[0], position + 1, saved))
            elif op is Op.FREE:
                todo += [(each, position, saved) for each in reversed(following)]
            else:
                todo += self._follow(number, position, saved)
        return None

    def _empty_loops(self, position: int, saved: _Positions) -> tuple[bool, ...]:
        if not self._program.loop_count:
            return ()
        return tuple(each == position for each in saved[self._first_loop :])

    def _follow(
        self, number: int, position: int, saved: _Positions
    ) -> list[tuple[int, int, _Positions]]:
        """Return what follows other states, by ascending priority."""
        op, argument, following = self._program.states[number]
        if op is Op.SAVE:
            saved = _replaced(saved, argument, position)
        elif op is Op.CHECK:
            if not self._program.checks[argument].is_true(self._text, position):
                return []
        elif op is Op.ENTER:
            saved = _replaced(saved, self._first_loop + argument, position)
        elif op is Op.LEAVE:
            is_empty = saved[self._first_loop + argument[0]] == position
            following = after_iteration(argument, following, is_empty)
        elif op is Op.LOOK:
            looked = self._look(argument, position, saved)
            if looked is None:
                return []
            saved = looked
        else:
            consumed = self._consume(op, argument, position, saved)
            if consumed is None:
                return []
            position, saved = consumed
        return [(each, position, saved) for each in reversed(following)]

    def _look(self, look: Look, position: int, saved: _Positions) -> _Positions | None:
        starts = range(position, -1, -1) if look.is_backward else (position,)
        end = position if look.is_backward else None
        for start in starts:
            found = self.match(look.first, start, saved, end, set())
            if found is not None:
                return None if look.is_negated else found[1]
        return saved if look.is_negated else None

    def _consume(
        self, op: Op, argument: object, position: int, saved: _Positions
    ) -> tuple[int, _Positions] | None:
        if op is Op.ATOMIC:
            assert isinstance(argument, int)
            return self.match(argument, position, saved, None, set())
        assert isinstance(argument, tuple)
        group, ignores_case = argument
        start, end = saved[2 * group : 2 * group + 2]
        if start is None or end is None:
            return None
        wanted, there = self._text[start:end], self._text[position : position + end - start]
        self._steps.take(len(wanted))
        if ignores_case:
            wanted, there = _ascii_lower(wanted), _ascii_lower(there)
        return (position + end - start, saved) if wanted == there else None


def _replaced(saved: _Positions, index: int, position: int) -> _Positions:
    return (*saved[:index], position, *saved[index + 1 :])


def _ascii_lower(text: str) -> str:
    return "".join(each.lower() if each.isascii() else each for each in text)
