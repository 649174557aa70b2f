"""Runs a program in time that is linear in the text: all states advance at once."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from ._program import Accepts, Op, Program, Slots, State

CACHED_MAX: Final = 50_000
"""How many threads the remembered transitions may have together, which bounds their memory."""
STEPS_PER_CHARACTER: Final = 10
"""Steps that a character is counted as where it is new; following a transition is one step."""
PREDICATES_PER_STEP: Final = 2
"""How many predicates are applied to such a character in one step."""
STEPS_PER_MOVE: Final = 20
"""Steps that a new transition is counted as."""
STEPS_PER_VISIT: Final = 4
"""Steps that each visit of a state adds to them."""

_EDGE: Final = 2  # a line separator of two characters may stand before the end
_BEFORE_ALL: Final = "\0"  # accepted by the state that all others follow


class _Threads:
    """Threads after a character: the states in which they wait, by descending priority."""

    __slots__ = ("has_ended", "moves", "moves_by_class", "states")

    def __init__(self, states: tuple[int, ...]) -> None:
        self.states = states
        # A thread at the end is the last one, since it ends all of a lower priority.
        self.has_ended = states[-1:] == (0,)
        self.moves: dict[str | tuple[str, int], _Move] = {}
        self.moves_by_class: dict[tuple[int, int], _Move] = {}


class _Move:
    """A transition.

    Attributes:
        threads: what it leads to.
        origins: for each of them the index of the thread that it continues, and the slots in which
            the new position is stored.
        cost: the number of steps; most of them are taken once, when the transition is found.
    """

    __slots__ = ("cost", "origins", "threads")

    def __init__(
        self, threads: _Threads, origins: tuple[tuple[int, tuple[int, ...]], ...], cost: int
    ) -> None:
        self.threads = threads
        self.origins = origins
        self.cost = cost


class Automaton:
    """Matches a whole text, or finds the leftmost match, with the groups of a backtracking matcher.

    Args:
        program: a linear program.
        is_whole: whether a match is to be the whole text.

    Attributes:
        remembered: how many transitions and threads of them are remembered.
    """

    def __init__(self, program: Program, *, is_whole: bool) -> None:
        self._checks = program.checks
        self._has_inner_checks = not all(check.is_at_edges for check in program.checks)
        # What following a remembered transition costs.
        self._cost = 1 + (2 * (1 + len(program.checks)) if self._has_inner_checks else 0)
        self._slot_count = 2 * program.group_count
        self._is_whole = is_whole
        first = program.first
        self._states = list(program.states)
        if not is_whole:  # a thread of the lowest priority starts at each position
            skipping = self._add(Op.ACCEPT, _accept_any, ())
            first = self._add(Op.FREE, None, (first, skipping))
            self._states[skipping] = State(Op.ACCEPT, _accept_any, (first,))
        self._start = _Threads((self._add(Op.ACCEPT, _accept_any, (first,)),))
        self._known: dict[tuple[int, ...], _Threads] = {}
        # Characters that the same states accept belong to one class, and need one transition.
        found = dict.fromkeys(each.argument for each in self._states if each.op is Op.ACCEPT)
        self._predicates: list[Accepts] = list(found)
        self._classes: dict[str, int] = {}
        self.remembered = 0

    def _add(self, op: Op, argument: object, following: tuple[int, ...]) -> int:
        self._states.append(State(op, argument, following))
        return len(self._states) - 1

    def steps(self, text: str, start: int = 0) -> Generator[int, None, Slots | None]:
        """Match a text from a position, as a generator that yields before each character.

        Yields the number of steps taken. Returns the slots, the first two of which are those of the
        match; None if there is no match.
        """
        moves: list[_Move] = []
        length = len(text)
        # Between these positions no check is true, so that the character alone determines a move.
        first, last = (length, 0) if self._has_inner_checks else (start + 1, length - _EDGE)
        move = self._move(self._start, _BEFORE_ALL, self._true_at(text, start))
        end = start if move.threads.has_ended else None
        for position in range(start + 1, length + 1):
            yield move.cost
            character = text[position - 1]
            moves.append(move)
            threads = move.threads
            if first <= position < last:
                following = threads.moves.get(character)
                move = following or self._move(threads, character, 0)
            else:
                move = self._move(threads, character, self._true_at(text, position))
            threads = move.threads
            if threads.has_ended:
                end = position
            elif not threads.states:
                break
        moves.append(move)
        return None if end is None else self._slots(moves[: end - start + 1], start)

    def _slots(self, moves: list[_Move], start: int) -> Slots:
        """Return the slots of a match by going back from its end."""
        slots: Slots = [None] * self._slot_count
        missing = set(range(self._slot_count))
        index = -1
        for position in range(start + len(moves) - 1, start - 1, -1):
            if not missing:
                break
            index, saved = moves[position - start].origins[index]
            for slot in reversed(saved):
                if slot in missing:
                    missing.discard(slot)
                    slots[slot] = position
        return slots

    def _true_at(self, text: str, position: int) -> int:
        """Return which checks are true, as bits; the one after them is that of the end."""
        true = (position == len(text)) << len(self._checks)
        for number, check in enumerate(self._checks):
            true |= check.is_true(text, position) << number
        return true

    def _move(self, threads: _Threads, character: str, true: int) -> _Move:
        key = (character, true) if true else character
        move = threads.moves.get(key)
        if move is not None:
            return move
        cost = STEPS_PER_CHARACTER
        number = self._classes.get(character)
        if number is None:
            number = self._classes[character] = self._class_of(character)
            cost += len(self._predicates) // PREDICATES_PER_STEP
            self._remember(1)
        move = threads.moves_by_class.get((number, true))
        if move is None:
            move, walked = self._find_move(threads, character, true)
            threads.moves_by_class[number, true] = move
            cost += walked
        threads.moves[key] = move
        self._remember(1)
        return _Move(move.threads, move.origins, cost)

    def _class_of(self, character: str) -> int:
        bits = 0
        for number, accepts in enumerate(self._predicates):
            if accepts(character):
                bits |= 1 << number
        return bits

    def _remember(self, size: int) -> None:
        self.remembered += size
        if self.remembered > CACHED_MAX:
            self.remembered = 0
            self._known.clear()
            self._classes.clear()
            self._start.moves.clear()
            self._start.moves_by_class.clear()

    def _find_move(self, threads: _Threads, character: str, true: int) -> tuple[_Move, int]:
        """Return a transition, and how many steps it took to find."""
        walk = _Walk(self._states, true, self._is_whole and not true >> len(self._checks))
        for index, state in enumerate(threads.states):
            op, accepts, following = self._states[state]
            if op is Op.ACCEPT and accepts(character) and walk.run(following[0], index):
                break
        states = tuple(walk.waiting)
        self._remember(1 + len(states))
        known = self._known.setdefault(states, _Threads(states))
        steps = STEPS_PER_MOVE + STEPS_PER_VISIT * (len(threads.states) + walk.visits)
        return _Move(known, tuple(walk.origins), self._cost), steps


class _Walk:
    """Follows the states that consume nothing, for all threads of one transition."""

    def __init__(self, states: list[State], true: int, cannot_end: bool) -> None:
        self._states = states
        self._true = true
        self._cannot_end = cannot_end
        # A state can be met again inside other iterations that are still empty.
        self._met: set[tuple[int, frozenset[int]]] = set()
        self.waiting: dict[int, None] = {}
        self.origins: list[tuple[int, tuple[int, ...]]] = []
        self.visits = 0

    def run(self, first: int, index: int) -> bool:
        """Continue a thread, and return whether it ended, and with it all of a lower priority."""
        todo: list[tuple[int, tuple[int, ...], frozenset[int]]] = [(first, (), frozenset())]
        while todo:
            number, saved, empty = todo.pop()
            self.visits += 1
            if (number, empty) in self._met:
                continue
            self._met.add((number, empty))
            op, argument, following = self._states[number]
            if op is Op.ACCEPT or op is Op.END:
                if number in self.waiting or (op is Op.END and self._cannot_end):
                    continue
                self.waiting[number] = None
                self.origins.append((index, saved))
                if op is Op.END:
                    return True
                continue
            if op is Op.SAVE:
                saved = (*saved, argument)
            elif op is Op.ENTER:
                empty |= {argument}
            elif op is Op.CHECK and not self._true >> argument & 1:
                continue
            elif op is Op.LEAVE:
                following = after_iteration(argument, following, argument[0] in empty)
                empty -= {argument[0]}
            todo += [(each, saved, empty) for each in reversed(following)]
        return False


def after_iteration(
    argument: tuple[int, bool], following: tuple[int, ...], is_empty: bool
) -> tuple[int, ...]:
    """Return where to continue after an iteration of a loop, by descending priority.

    As in Java, an empty iteration is the last one.
    """
    again, after = following
    if is_empty:
        return (after,)
    return following if argument[1] else (after, again)


def _accept_any(_: str) -> bool:
    return True
