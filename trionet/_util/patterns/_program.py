"""The compiled form of a regular expression: states, run by an automaton or with backtracking."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple

Accepts = Callable[[str], object]
"""Returns whether a character is accepted, as something true or false."""
Slots = list[int | None]
"""Where groups start (even indexes) and end (odd ones); None for a group that did not match."""


class Op(Enum):
    """What a state does."""

    END = auto()
    """The expression has matched."""
    ACCEPT = auto()
    """Consumes a character; the argument is its predicate."""
    FREE = auto()
    """Continues at each successor; the first one has the highest priority."""
    SAVE = auto()
    """Stores the position in a slot; the argument is its index."""
    CHECK = auto()
    """Continues where a check of the program is true; the argument is its index."""
    ENTER = auto()
    """Begins an iteration of a loop whose body may be empty; the argument is the loop's number."""
    LEAVE = auto()
    """Ends such an iteration; an empty one continues at the last successor only.

    The argument is the loop's number and whether the loop is greedy.
    """
    # The states below need backtracking.
    BACK = auto()
    """Consumes the text of a group; the argument is its number and whether case is ignored."""
    LOOK = auto()
    """Continues where a part matches (or does not); the argument is a `Look`."""
    ATOMIC = auto()
    """Consumes the first match of a part; the argument is the part's first state."""


class State(NamedTuple):
    """A state of a program."""

    op: Op
    argument: Any
    next: tuple[int, ...]


class Look(NamedTuple):
    """A lookahead or lookbehind."""

    first: int
    is_backward: bool
    is_negated: bool


class Check(NamedTuple):
    """A condition of a position in a text, such as ``^``.

    Attributes:
        is_true: ``(text, position) -> bool``.
        is_at_edges: whether it is false except at the first and the last three positions.
    """

    is_true: Callable[[str, int], bool]
    is_at_edges: bool


class Program(NamedTuple):
    """A compiled regular expression; its state 0 is the end."""

    states: list[State]
    first: int
    checks: list[Check]
    group_count: int
    loop_count: int
    is_linear: bool
    has_back_references: bool


class TooManyStepsError(Exception):
    """A match needs more steps than it may take."""


class Steps:
    """The number of steps that may still be taken.

    Args:
        most: the number of steps. The unit is about 0.3 µs.
    """

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, count: int) -> None:
        """Take steps.

        Raises:
            TooManyStepsError: fewer are left.
        """
        self._left -= count
        if self._left < 0:
            raise TooManyStepsError
